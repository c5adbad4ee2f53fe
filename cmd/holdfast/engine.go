//go:build unix

package main

import (
	"context"
	"io"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// A store is what the command needs of an open store: the contract, and what
// only an operator asks of the v2 engine.
type store interface {
	queue.Store
	ID() string
	Recover(ctx context.Context) (holdfast.Recovery, error)
	Collect(ctx context.Context, o holdfast.CollectOptions) (holdfast.CollectReport, error)
	PurgeLost(ctx context.Context, o queue.PurgeOptions) (uint64, error)
	Resolve(ctx context.Context, u *queue.UncertainError) (committed bool, err error)
	Settings(ctx context.Context) (holdfast.Settings, error)
	Set(ctx context.Context, s holdfast.Settings) error
	Stats() holdfast.Stats
	Backup(ctx context.Context, dir string, o holdfast.BackupOptions) (holdfast.BackupReport, error)
	BackupTar(ctx context.Context, w io.Writer, o holdfast.BackupOptions) (holdfast.BackupReport, error)
}

type openFunc func(ctx context.Context, dir string, o *holdfast.Options) (store, error)

// An engine is how stores are opened. Tests put a simpler one in its place.
type engine struct {
	create, resume, open, look openFunc
	verify                     func(ctx context.Context, dir string, o *holdfast.Options, v holdfast.VerifyOptions) (holdfast.Report, error)
}

func v2Engine() engine {
	return engine{
		create: opener(holdfast.Create),
		resume: opener(holdfast.ResumeCreate),
		open:   opener(holdfast.Open),
		look:   opener(holdfast.OpenReadOnly),
		verify: holdfast.VerifyDir,
	}
}

// opener keeps a nil *Store from becoming a store that is not nil.
func opener(open func(context.Context, string, *holdfast.Options) (*holdfast.Store, error)) openFunc {
	return func(ctx context.Context, dir string, o *holdfast.Options) (store, error) {
		s, err := open(ctx, dir, o)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
}
