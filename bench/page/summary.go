//go:build unix

package page

import (
	"fmt"
	"io"
	"strings"

	"example.com/holdfast/bench/measure"
)

// summary prints the medians of all workloads beside each other.
func (r Report) summary(w io.Writer) {
	t := table{head: []string{""}}
	var columns []Result
	for _, result := range r.Results {
		if result.Workload.Memory || result.Workload.Depth > 0 && !result.Workload.Reopen {
			continue // they have tables of their own
		}
		title := result.Workload.Title
		if result.Workload.Reopen {
			title += ", ms"
		}
		t.head = append(t.head, title)
		columns = append(columns, result)
	}
	if len(columns) == 0 {
		return
	}
	fmt.Fprint(w, "## At a glance\n\nMessages a second, medians.\n\n")
	for _, p := range r.Peers {
		cells := []string{p.Name}
		for _, result := range columns {
			cell := none
			if row := result.row(p.Key); row != nil {
				_, pick, _ := result.cost()
				cell = figure(row.median(pick))
			}
			cells = append(cells, cell)
		}
		t.add(cells...)
	}
	t.write(w)
}

// depth prints what a message costs by how many others are pending.
func (r Report) depth(w io.Writer) {
	t := table{head: []string{""}}
	var columns []string
	for _, result := range r.Results {
		if l := result.Workload; !l.Reopen && (l.Depth > 0 || l.Key == "one") {
			t.head = append(t.head, fmt.Sprintf("%s pending", thousands(fmt.Sprint(l.Depth))))
			columns = append(columns, l.Key)
		}
	}
	if len(columns) < 2 {
		return
	}
	fmt.Fprint(w, "## By depth\n\nMilliseconds a message with one goroutine, medians, and in parentheses how many times that with nothing else pending.\n\n")
	for _, p := range r.Peers {
		cells := []string{p.Name}
		var flat float64
		for _, key := range columns {
			row := r.row(key, p.Key)
			if row == nil {
				cells = append(cells, none)
				continue
			}
			ms := row.median(measure.Sample.PerMessage) * 1e3
			cell := figure(ms)
			if key == "one" {
				flat = ms
			} else if flat > 0 {
				cell += " (" + figure(ms/flat) + ")"
			}
			cells = append(cells, cell)
		}
		if strings.Join(cells[1:], "") != strings.Repeat(none, len(columns)) && !p.Floor {
			t.add(cells...)
		}
	}
	t.write(w)
}

// device prints what reaches the disk.
func (r Report) device(w io.Writer) {
	var results []Result
	t := table{head: []string{""}}
	for _, result := range r.Results {
		if key := result.Workload.Key; key == "one" || key == "64" {
			results = append(results, result)
			t.head = append(t.head, result.Workload.Title+": written", "flushes")
		}
	}
	if len(results) == 0 {
		return
	}
	fmt.Fprint(w, "## What the device does for a message\n\n")
	if !r.Device {
		fmt.Fprint(w, "Left out: there is no block device whose counters could be read.\n\n")
		return
	}
	fmt.Fprint(w, "By the counters of the whole device, which count what anybody else on the machine writes too; what it did in an idle moment before each workload is taken off. Medians.\n\n")
	for _, p := range r.Peers {
		cells := []string{p.Name}
		some := false
		for _, result := range results {
			row := result.row(p.Key)
			if row == nil {
				cells = append(cells, none, none)
				continue
			}
			some = true
			cells = append(cells,
				size(row.median(func(s measure.Sample) float64 { return s.Written / float64(s.Messages) })),
				figure(row.median(func(s measure.Sample) float64 { return s.Flushes / float64(s.Messages) })))
		}
		if some {
			t.add(cells...)
		}
	}
	t.write(w)
}

// state prints how large a rewritten state is by depth.
func (r Report) state(w io.Writer) {
	t := table{head: []string{"pending", "state.json", "its text, without padding"}}
	for _, result := range r.Results {
		l := result.Workload
		row := result.row(first)
		if row == nil || row.State.Size < 0 || l.Reopen || l.Depth == 0 && l.Key != "one" {
			continue
		}
		t.add(thousands(fmt.Sprint(l.Depth)), size(float64(row.State.Size)), size(float64(row.State.Text)))
	}
	if len(t.rows) > 0 {
		fmt.Fprint(w, "## Holdfast's state file\n\nEvery commit replaces it.\n\n")
		t.write(w)
	}
}
