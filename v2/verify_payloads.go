//go:build unix

package holdfast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"

	"example.com/holdfast/queue"
)

// aloneBytes is how many payload bytes one goroutine reads sooner than others are started.
const aloneBytes = 1 << 20

// read reads every payload as a claim would, each object once, and admits its JSON again.
func (x *inspection) read(ctx context.Context, o VerifyOptions) error {
	var total int64
	order := make([]int, len(x.parts)) // by object, and in that by place
	for i := range x.parts {
		order[i] = i
		total += x.parts[i].size
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(comparePlaces(x.parts[a], x.parts[b]), cmp.Compare(a, b))
	})
	r := &reading{x: x, order: order, total: total, progress: o.Progress}
	workers := o.Workers
	if total < aloneBytes {
		workers = 1
	}
	var done sync.WaitGroup
	for range workers - 1 {
		done.Go(func() { r.work(ctx) })
	}
	r.work(ctx)
	done.Wait()
	if r.err != nil {
		return r.err
	}
	slices.SortFunc(r.damage, func(a, b damage) int { return cmp.Compare(a.part, b.part) })
	for _, d := range r.damage {
		p := &x.parts[d.part]
		x.report.Faults = append(x.report.Faults, Fault{
			Code: "payload", File: payloadPath(p.object), Queue: p.queue, ID: p.id, Reason: d.why,
		})
	}
	x.report.PayloadBytes = r.done
	return nil
}

// payloadPath names an object's file in errors.
func payloadPath(object token) string {
	return objectsDir + "/" + object.String() + "/" + payloadFile
}

// A damage says why the payload of a part cannot be delivered.
type damage struct {
	part int
	why  string
}

// A reading is what the workers share.
type reading struct {
	x        *inspection
	total    int64
	progress func(done, total int64)

	mu     sync.Mutex
	order  []int // what nobody has taken yet
	done   int64
	damage []damage
	err    error // the first; it ends the others too
}

// take gives the parts of the next object; none: there is no more, or an error.
func (r *reading) take(ctx context.Context) (parts []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = ctx.Err()
	}
	if r.err != nil || len(r.order) == 0 {
		return nil
	}
	all := r.x.parts
	n := 1
	for n < len(r.order) && all[r.order[n]].object == all[r.order[0]].object {
		n++
	}
	parts, r.order = r.order[:n], r.order[n:]
	return parts
}

// work reads objects until there is no more. Each worker has one open at a time.
func (r *reading) work(ctx context.Context) {
	file := &payloads{objects: r.x.objects}
	defer file.close()
	for parts := r.take(ctx); len(parts) > 0; parts = r.take(ctx) {
		for _, i := range parts {
			if !r.note(i, r.x.parts[i].size, file) {
				return
			}
		}
	}
}

// note reads one part and notes what came of it. False: it could not be read.
func (r *reading) note(i int, size int64, file *payloads) bool {
	why, err := r.x.parts[i].admit(file)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.err = cmp.Or(r.err, err)
		return false
	}
	if why != "" {
		r.damage = append(r.damage, damage{i, why})
	}
	r.done += size
	if r.progress != nil {
		r.progress(r.done, r.total)
	}
	return true
}

// wholePayload is the longest payload that is read into memory to be looked at.
const wholePayload = 1 << 20

// admit reads a payload as a claim would, and its JSON again. A long one it reads in pieces.
func (p *part) admit(file *payloads) (damage string, err error) {
	if p.size > wholePayload {
		damage, err = p.admitPieces(file)
	} else {
		_, damage, err = p.read(file)
	}
	if errors.Is(err, ErrUnsafe) {
		return err.Error(), nil
	}
	return damage, err
}

// read gives the payload if nothing is wrong with it.
func (p *part) read(file *payloads) (payload []byte, damage string, err error) {
	payload, damage, err = file.read(&ref{object: p.object, off: p.off, size: p.size, sum: p.sum})
	if err != nil || damage != "" {
		return nil, damage, err
	}
	// Whatever bounds the payload was accepted under, it is one JSON value.
	if err := queue.CheckPayload(payload, len(payload), len(payload)); err != nil {
		damage = err.Error()
	}
	return payload, damage, nil
}

// admitPieces is read without the payload in memory.
func (p *part) admitPieces(file *payloads) (damage string, err error) {
	if damage, err := file.open(p.object); damage != "" || err != nil {
		return damage, err
	}
	var sum uint32
	var json jsonScan
	valid, buf := true, make([]byte, unpackBuffer)
	for done := int64(0); done < p.size; {
		n, err := readFull(file.file, buf[:min(int64(len(buf)), p.size-done)], p.off+done)
		done += int64(n)
		switch {
		case errors.Is(err, io.EOF):
			return fmt.Sprintf("its object ends after %d of %d bytes", done, p.size), nil
		case err != nil:
			return "", err
		}
		sum = crc32.Update(sum, castagnoli, buf[:n])
		valid = valid && json.write(buf[:n])
	}
	switch {
	case sum != p.sum:
		return fmt.Sprintf("its checksum is %08x, not %08x", sum, p.sum), nil
	case !valid || !json.whole():
		return "it is no JSON value", nil
	}
	return "", nil
}
