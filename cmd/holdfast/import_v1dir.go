//go:build unix

package main

import (
	"os"
	"slices"

	v1 "example.com/holdfast/v1"
	holdfast "example.com/holdfast/v2"
)

// onV1 reports whether there is no store because the directory is a v1 queue: then it
// needs an import, and no store in its place or inside it.
func (a *app) onV1(k kind) bool {
	if !slices.Contains([]error{holdfast.ErrNoStore, holdfast.ErrNotEmpty}, k.err) {
		return false
	}
	listed, err := os.ReadDir(a.dir)
	if err != nil {
		return false
	}
	names := make([]string, len(listed))
	for i, e := range listed {
		names[i] = e.Name()
	}
	return v1.LooksLikeQueue(names)
}
