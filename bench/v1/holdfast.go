//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	holdfast "example.com/holdfast/v1"
)

var payload = []byte(`{"text":"` + strings.Repeat("x", 500) + `"}`)

// contenders are this library's. The control is the first one again.
func contenders() []contender {
	link := func(m holdfast.Mechanism) holdfast.Options { return holdfast.Options{Mechanism: m} }
	return []contender{
		{name: "hard links, auto", trial: ownTrial(link(holdfast.Auto))},
		{name: "hard links, auto again (control)", trial: ownTrial(link(holdfast.Auto))},
		{name: "hard links, off", trial: ownTrial(link(holdfast.Off))},
		{name: "no-replace rename, auto", trial: ownTrial(holdfast.Options{ClaimBy: holdfast.RenameNoReplace})},
		{name: "no-replace rename, off", trial: ownTrial(holdfast.Options{ClaimBy: holdfast.RenameNoReplace, Mechanism: holdfast.Off})},
	}
}

func ownTrial(o holdfast.Options) func(string, load) (time.Duration, error) {
	return func(dir string, l load) (time.Duration, error) {
		s, err := holdfast.OpenOrCreate(filepath.Join(dir, "queue"), &o)
		if err != nil {
			return 0, err
		}
		began := time.Now()
		err = share(l, func(id string) error { return pass(s, id) })
		return time.Since(began), errors.Join(err, s.Close())
	}
}

// share gives the messages to as many goroutines as the load says.
func share(l load, do func(id string) error) error {
	errs := make([]error, l.workers)
	var wg sync.WaitGroup
	for w := range l.workers {
		wg.Go(func() {
			for i := w; i < l.messages && errs[w] == nil; i += l.workers {
				errs[w] = do(fmt.Sprintf("message-%d", i))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func pass(s *holdfast.Store, id string) error {
	ctx := context.Background()
	if _, err := s.Enqueue(ctx, id, payload); err != nil {
		return err
	}
	c, err := s.Load(ctx, id, nil)
	if err != nil {
		return err
	}
	return s.Ack(ctx, c)
}
