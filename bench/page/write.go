//go:build unix

package page

import (
	"fmt"
	"io"

	"example.com/holdfast/bench/load"
)

// Write writes the whole page.
func Write(w io.Writer, r Report) {
	r.method(w)
	r.summary(w)
	r.depth(w)
	r.device(w)
	r.limits(w)
	r.state(w)
	fmt.Fprint(w, "## Each workload\n\n")
	for _, result := range r.Results {
		result.write(w)
	}
	r.setups(w)
}

func (r Report) method(w io.Writer) {
	fmt.Fprintf(w, `# Benchmarks

Written by `+"`make bench`"+`; not by hand.

%s: %s.

One message is an enqueue, a claim and an ack of %d bytes of JSON. All calls are durable when they return, in every peer. All peers are measured
in one run, workload by workload: each is set up once, then they take turns, each round beginning with another one, %d rounds after one that
does not count. A trial has at most %s messages for each goroutine and begins none after %v. The figures are medians over the rounds; ratios are
taken round by round. The control is the first peer once more: a ratio inside its range tells of no difference. Ratios carry over to other
machines, absolute figures do not.

Every payload is checked as it is delivered, and every queue in the end: a peer that had lost, altered or doubled a message would have ended the
run. A peer that is left out has a word in the place of its figure.

`,
		r.Date.UTC().Format("2006-01-02"), r.Machine, load.PayloadBytes, r.Reps, thousands(fmt.Sprint(r.Size.Messages)), r.Size.Limit)
}

// setups tells how each peer is used.
func (r Report) setups(w io.Writer) {
	fmt.Fprint(w, "## How each is set up\n\n")
	for _, p := range r.Peers {
		switch {
		case p.Missing != "":
			fmt.Fprintf(w, "- **%s**: left out, %s.\n", p.Name, p.Missing)
		case p.How != "":
			fmt.Fprintf(w, "- **%s**: %s\n", p.Name, p.How)
		}
	}
	fmt.Fprint(w, `
A floor is no queue: it makes durable, for each call, the bytes of that call. Of concurrent callers it makes one group, as large as they are many.
In the joint workloads its ack and claim are one write, so that a message has two.
`)
}
