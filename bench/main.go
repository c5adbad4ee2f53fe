//go:build unix

// Command bench measures this library beside what people would otherwise take, all in one
// interleaved run, and prints a page of tables.
//
//	go -C bench run . -dir DIR                       on DIR's filesystem
//	go -C bench run . -only one,64 -peers holdfast,goqite
//	go -C bench run . -deep -out ../docs/benchmarks.md
//	go -C bench run . -list
//
// One message is an enqueue, a claim and an ack of 512 bytes of JSON. Ratios carry over to
// other machines, absolute figures do not. Every peer is checked: one that loses, alters
// or doubles a message ends the run with an error. The v1 store has a bench of its own:
// go -C bench run ./v1.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"example.com/holdfast/bench/load"
)

func main() {
	load.Child() // when this is a process of a trial, it ends here
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
