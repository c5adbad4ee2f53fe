//go:build unix

package crashtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"example.com/holdfast/internal/fsguard"
)

// Many points of a scenario leave the same disk: dying after an operation is dying before
// the next, and what an operation adds may be lost. What Check finds rests on the disk and
// the journal only, so outcomes that are alike in both are checked once, and counted as
// often as they come up. Alike means the same names, contents, types, modes, owners and
// mtimes, and the same that is not durable; inode numbers and ctimes may differ.
//
// A scenario whose processes draw the same random numbers each time has more of them: see
// [Moment].

// A fingerprint is equal for worlds that are alike.
type fingerprint [sha256.Size]byte

// first reports whether w is to be checked: whether no point before w's has met its like,
// nor w's own. So a finding comes from the first point that has it, whichever goroutine is
// faster.
func (e *explorer) first(kind string, w world) bool {
	key := w.fingerprint(kind)
	e.mu.Lock()
	defer e.mu.Unlock()
	if rank, met := e.met[key]; met && rank <= w.rank {
		return false
	}
	e.met[key] = w.rank
	return true
}

// fingerprint tells w from others; kind is what will be done with it.
func (w world) fingerprint(kind string) fingerprint {
	buf := texts.Get().(*[]byte)
	defer texts.Put(buf)
	b := appendText((*buf)[:0], kind)
	for _, entry := range w.journal.Entries() {
		b = appendText(b, string(entry.State))
		b = appendText(b, entry.Key)
		b = appendText(b, entry.alike())
	}
	w.disk.mu.Lock()
	defer w.disk.mu.Unlock()
	*buf = w.disk.appendTo(b)
	return sha256.Sum256(*buf)
}

// texts are what worlds were told as, to be written over.
var texts = sync.Pool{New: func() any { return new([]byte) }}

// An Aliker is a value of a [Journal] that says itself what it is to Check. Others are
// what fmt prints, where that is all that they are: one that has a function in it, or a
// pointer to what is not printed, is unlike any other. Of a function fmt prints where its
// code is, which closures with different values in them share.
type Aliker interface{ Alike() string }

// unlike numbers the values that are unlike any other.
var unlike atomic.Int64

func (e Entry) alike() string {
	if a, ok := e.Value.(Aliker); ok {
		return a.Alike()
	}
	if !printed(reflect.ValueOf(e.Value), 0) {
		return fmt.Sprint("unlike any other: ", unlike.Add(1))
	}
	return fmt.Sprint(e.Value)
}

// printed reports whether fmt prints all of v, which is so deep in a value, and no address.
func printed(v reflect.Value, depth int) bool {
	if v.IsValid() && v.CanInterface() {
		switch v.Interface().(type) {
		case error, fmt.Stringer, fmt.Formatter:
			return true // it says itself what it is
		}
	}
	switch v.Kind() {
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return v.IsNil()
	case reflect.Interface:
		return printed(v.Elem(), depth+1)
	case reflect.Pointer:
		if v.IsNil() {
			return true
		}
		switch v.Elem().Kind() {
		case reflect.Struct, reflect.Array, reflect.Slice, reflect.Map:
			return depth == 0 && printed(v.Elem(), 1)
		}
		return false
	case reflect.Struct:
		for i := range v.NumField() {
			if !printed(v.Field(i), depth+1) {
				return false
			}
		}
	case reflect.Array, reflect.Slice:
		if v.Type().Elem().Kind() <= reflect.Complex128 { // numbers
			return true
		}
		for i := range v.Len() {
			if !printed(v.Index(i), depth+1) {
				return false
			}
		}
	case reflect.Map:
		for at := v.MapRange(); at.Next(); {
			if !printed(at.Key(), depth+1) || !printed(at.Value(), depth+1) {
				return false
			}
		}
	}
	return true
}

// appendTo appends to b all of the disk that a process or an image can see of it.
func (d *Disk) appendTo(b []byte) []byte {
	b = appendText(b, fmt.Sprint(d.conf))
	nodes := d.reachable()
	for _, n := range d.linked { // a removed one has operations that others may rest on
		if !slices.Contains(nodes, n) {
			nodes = append(nodes, n)
		}
	}
	number := make(map[*inode]int, len(nodes))
	ops := map[*nameOp]int{} // one that is durable and gone has no number: it is 0
	for i, n := range nodes {
		number[n] = i
		for _, o := range n.ops {
			ops[o] = len(ops) + 1
		}
	}
	names := func(m map[string]*inode) {
		b = appendNumbers(b, len(m))
		for _, name := range slices.Sorted(maps.Keys(m)) {
			b = appendText(b, name)
			b = appendNumbers(b, number[m[name]])
		}
	}
	for _, n := range nodes {
		b = appendNumbers(b, int(n.mode), int(n.uid), int(n.mtime), n.links, len(n.writes), len(n.ops))
		b = appendText(b, n.target)
		b = appendContent(b, n.data)
		if len(n.writes) > 0 {
			b = appendContent(b, n.base)
		}
		for _, w := range n.writes {
			b = appendNumbers(b, w.off, int(w.fate))
			b = appendContent(b, w.data)
		}
		names(n.names)
		if len(n.ops) > 0 {
			names(n.ground)
		}
		for _, o := range n.ops {
			b = appendNumbers(b, number[o.node], int(o.fate), number[o.other], len(o.keep))
			for _, text := range slices.Concat([]string{string(o.kind), o.name, o.to, o.guard}, o.keep, o.stays) {
				b = appendText(b, text)
			}
			for _, list := range [][]*nameOp{o.rests, o.under} {
				b = appendNumbers(b, len(list))
				for _, other := range list {
					b = appendNumbers(b, ops[other])
				}
			}
		}
	}
	return b
}

func appendText(b []byte, text string) []byte {
	return append(appendNumbers(b, len(text)), text...)
}

// appendContent spares the zeros at the end, of which a file may have many.
func appendContent(b, data []byte) []byte {
	text := data
	for len(text) >= len(zeros) && bytes.Equal(text[len(text)-len(zeros):], zeros[:]) {
		text = text[:len(text)-len(zeros)]
	}
	text = bytes.TrimRight(text, "\x00")
	return append(appendNumbers(b, len(data), len(text)), text...)
}

// zeros are compared at once, which is faster than one by one.
var zeros [512]byte

func appendNumbers(b []byte, numbers ...int) []byte {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// Moment is a number for a process on fs to draw its random numbers by: the same whenever
// a scenario comes to the same point, another each time that it is asked for, and another
// than every process had that changed the disk before. It is false where fs is no Wrapper
// over a simulated disk.
func Moment(fs fsguard.FS) (moment [2]uint64, ok bool) {
	w, ok := fs.(*Wrapper)
	if !ok {
		return moment, false
	}
	p, ok := w.inner.(*Process)
	if !ok {
		return moment, false
	}
	w.mu.Lock()
	w.moments++
	moment[1] = w.moments
	w.mu.Unlock()
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	moment[0] = uint64(p.d.clock)
	return moment, true
}
