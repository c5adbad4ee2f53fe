//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"example.com/holdfast/bench/load"
	"example.com/holdfast/bench/measure"
	"example.com/holdfast/bench/page"
	"example.com/holdfast/bench/peer"
)

// warmUp is the share of a trial that goes before the first round and does not count.
const warmUp = 4

// idleFor is how long the device is watched before a workload.
const idleFor = 300 * time.Millisecond

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil // it was printed
	}
	if err != nil {
		return err
	}
	if o.list {
		printList(stdout, o)
		return nil
	}
	b, err := newBench(o, stderr)
	if err != nil {
		return err
	}
	defer b.clean()
	report, err := b.all(ctx)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	page.Write(&text, report)
	if _, err := stdout.Write(text.Bytes()); err != nil || o.out == "" {
		return err
	}
	return os.WriteFile(o.out, text.Bytes(), 0o644)
}

// A bench is one run.
type bench struct {
	options
	log    io.Writer
	base   string          // on the filesystem that is measured
	memory string          // on tmpfs; empty: there is none
	device *measure.Device // nil: there is none
}

func newBench(o options, log io.Writer) (*bench, error) {
	b := &bench{options: o, log: log}
	var err error
	if b.base, err = os.MkdirTemp(o.dir, "holdfast-bench-"); err != nil {
		return nil, err
	}
	if dir := measure.Memory(); dir != "" {
		if b.memory, err = os.MkdirTemp(dir, "holdfast-bench-"); err != nil {
			b.clean()
			return nil, err
		}
	}
	if b.device, err = measure.FindDevice(b.base); err != nil {
		b.clean()
		return nil, err
	}
	return b, nil
}

func (b *bench) clean() {
	for _, dir := range []string{b.base, b.memory} {
		if dir == "" {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(b.log, err)
		}
	}
}

func (b *bench) all(ctx context.Context) (page.Report, error) {
	r := page.Report{
		Date: time.Now(), Machine: measure.Machine(b.base, b.device), Reps: b.reps, Size: b.size,
		Peers: b.peers, Device: b.device != nil,
	}
	for _, w := range b.workloads {
		result, err := b.measure(ctx, w)
		if err != nil {
			return r, fmt.Errorf("%s: %w", w.Key, err)
		}
		r.Results = append(r.Results, result)
	}
	var err error
	r.Syncs, err = b.syncs(ctx)
	return r, err
}

// measure does one workload: all peers are set up, then take turns, and are checked in the
// end.
func (b *bench) measure(ctx context.Context, w load.Workload) (page.Result, error) {
	began := time.Now()
	result := page.Result{Workload: w, Rows: make([]page.Row, 0, len(b.peers))} // never moved: rows points into it
	base := b.base
	if w.Memory {
		base = b.memory
	}
	var scenes []*load.Scene
	defer func() {
		for _, s := range scenes {
			s.Abandon() // those that are left
		}
	}()
	var rows []*page.Row // beside scenes
	for _, p := range b.peers {
		if !w.Concerns(p) {
			continue
		}
		result.Rows = append(result.Rows, page.Row{Peer: p, State: load.State{Size: -1}})
		row := &result.Rows[len(result.Rows)-1]
		if row.Without = w.Without(p); row.Without == "" && base == "" {
			row.Without = "no tmpfs"
		}
		if row.Without != "" {
			continue
		}
		s, err := load.NewScene(ctx, w, p, b.npm, base)
		if err != nil {
			return result, fmt.Errorf("%s: %w", p.Key, err)
		}
		scenes, rows = append(scenes, s), append(rows, row)
		if row.State, err = s.State(); err != nil {
			return result, fmt.Errorf("%s: %w", p.Key, err)
		}
	}
	filled := time.Since(began)
	device, idle, err := b.watch(w)
	if err != nil {
		return result, err
	}
	err = measure.Interleave(len(scenes), b.reps+1, func(round, i int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		size := b.size
		if round == 0 {
			size.Limit /= warmUp
		}
		sample, err := scenes[i].Trial(ctx, size, device, idle)
		if err != nil {
			return fmt.Errorf("%s: %w", rows[i].Peer.Key, err)
		}
		if round > 0 {
			rows[i].Samples = append(rows[i].Samples, sample)
		}
		return nil
	})
	for i := 0; err == nil && len(scenes) > 0; i++ {
		s := scenes[0]
		scenes = scenes[1:]
		if err = s.Finish(ctx); err != nil {
			err = fmt.Errorf("%s: %w", rows[i].Peer.Key, err)
		}
	}
	fmt.Fprintf(b.log, "%-10s %6.1f s, of which %.1f s to set up\n", w.Key, time.Since(began).Seconds(), filled.Seconds())
	return result, err
}

// watch looks at what the device does before a workload begins.
func (b *bench) watch(w load.Workload) (*measure.Device, measure.Traffic, error) {
	if b.device == nil || w.Memory {
		return nil, measure.Traffic{}, nil
	}
	idle, err := b.device.IdleTraffic(idleFor)
	return b.device, idle, err
}

// syncsOf are the numbers of goroutines whose syncs are counted, by the workload that has
// so many, and the messages of a count.
var syncsOf = map[string]struct{ workers, messages int }{"one": {1, 20}, "64": {64, 256}}

// syncs counts the syncs of each peer. They are counted, not timed, so that once is enough.
func (b *bench) syncs(ctx context.Context) ([]page.Syncs, error) {
	began := time.Now()
	var list []page.Syncs
	for _, w := range b.workloads {
		n, ok := syncsOf[w.Key]
		if !ok {
			continue
		}
		s := page.Syncs{Workload: w, PerMessage: map[string]float64{}, Without: load.Tracer()}
		for _, p := range b.peers {
			if s.Without != "" || !w.Concerns(p) || w.Without(p) != "" || p.Key == peer.Control {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			var err error
			if s.PerMessage[p.Key], err = load.Syncs(p, b.npm, b.base, n.workers, n.messages); err != nil {
				return nil, fmt.Errorf("syncs of %s: %w", p.Key, err)
			}
		}
		list = append(list, s)
	}
	if len(list) > 0 {
		fmt.Fprintf(b.log, "%-10s %6.1f s\n", "syncs", time.Since(began).Seconds())
	}
	return list, nil
}
