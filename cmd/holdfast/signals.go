//go:build unix

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal gives a context that SIGINT, SIGTERM or SIGHUP ends. A second one ends the
// process at once, with 128 and the signal's number as a shell says it. That is done here
// and not left to the system: a script starts what it sends to the background with SIGINT
// ignored, and the system's way would be to ignore it again. SIGHUP, which a terminal
// sends when it goes away, stays ignored where nohup made it so.
//
// A reader of stdout or stderr that has gone must not end the process inside a commit: with
// SIGPIPE taken here, the write fails instead. Programs that are started get it as ever.
func untilSignal() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	told := make(chan os.Signal, 2)
	signal.Notify(told, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(told, syscall.SIGHUP)
	}
	pipes := make(chan os.Signal, 1) // nobody reads it: the write's own error says enough
	signal.Notify(pipes, syscall.SIGPIPE)
	go func() {
		<-told
		cancel()
		if again, ok := (<-told).(syscall.Signal); ok {
			os.Exit(128 + int(again))
		}
	}()
	return ctx, func() {
		signal.Stop(told)
		cancel()
	}
}
