//go:build unix

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	holdfast "example.com/holdfast/v1"
)

// One program enqueues an entry, another loads and acknowledges it; either may be
// written in JavaScript.
func Example() {
	dir, err := os.MkdirTemp("", "holdfast-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	store, err := holdfast.OpenOrCreate(filepath.Join(dir, "queue"), &holdfast.Options{FailedDir: filepath.Join(dir, "failed")})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	if _, err := store.Enqueue(ctx, "welcome-ann", []byte(`{"to":"ann"}`)); err != nil {
		log.Fatal(err)
	}
	// From here on the entry survives SIGKILL and the loss of power.

	claim, err := store.Load(ctx, "welcome-ann", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer claim.Close()
	fmt.Printf("%s\n", claim.Payload)
	if err := store.Ack(ctx, claim); err != nil { // done for good; store.Fail would set it aside
		log.Fatal(err)
	}

	_, err = store.Load(ctx, "welcome-ann", nil)
	fmt.Println(errors.Is(err, holdfast.ErrNotFound))
	// Output:
	// {
	//   "to": "ann"
	// }
	// true
}

// Where the system refuses hard links, as Android does to every app, another route is
// there to be chosen. It is never chosen for you.
func Example_noReplace() {
	dir, err := os.MkdirTemp("", "holdfast-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	store, err := holdfast.Open(dir, &holdfast.Options{ClaimBy: holdfast.RenameNoReplace})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Enqueue(ctx, "a", []byte(`1`)); err != nil {
		log.Fatal(err)
	}

	claim, err := store.Load(ctx, "a", nil)
	var refused *holdfast.LinkError
	switch {
	case errors.As(err, &refused): // neither route: use the v2 store
		fmt.Println("refused:", refused.Route, refused.Errno)
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Printf("%s is claimed\n", claim.ID)
		if err := store.Ack(ctx, claim); err != nil {
			log.Fatal(err)
		}
	}
	// Output: a is claimed
}

// A consumer that starts takes whatever is there: what is pending, and what its last
// run claimed and did not finish.
func ExampleStore_LoadPending() {
	dir, err := os.MkdirTemp("", "holdfast-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	store, err := holdfast.OpenOrCreate(filepath.Join(dir, "queue"), &holdfast.Options{FailedDir: filepath.Join(dir, "failed")})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	for id, payload := range map[string]string{"a": `{"version":1}`, "b": `"hello"`} {
		if _, err := store.Enqueue(ctx, id, []byte(payload)); err != nil {
			log.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "queue", "c.json"), []byte(`{"cut of`), 0o600); err != nil {
		log.Fatal(err)
	}

	batch, err := store.LoadPending(ctx, nil)
	if err != nil {
		log.Fatal(err) // names each that failed; batch has the others
	}
	for _, claim := range batch.Claims {
		fmt.Println(claim.ID, len(claim.Payload))
		if err := store.Ack(ctx, claim); err != nil {
			log.Fatal(err)
		}
	}
	for _, skipped := range batch.Skipped { // they stay until somebody decides
		fmt.Println(skipped.ID, errors.Is(skipped.Err, holdfast.ErrInvalidJSON))
		if err := store.FailID(ctx, skipped.ID); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// a 18
	// b 7
	// c true
}
