//go:build unix

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal gives a context that SIGINT or SIGTERM ends. A second one ends the process
// at once, with 128 and the signal's number as a shell says it. That is done here and not
// left to the system: a script starts what it sends to the background with SIGINT
// ignored, and the system's way would be to ignore it again.
func untilSignal() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	told := make(chan os.Signal, 2)
	signal.Notify(told, os.Interrupt, syscall.SIGTERM)
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
