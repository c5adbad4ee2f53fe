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

// round takes what is in the directory and answers for each entry. A consumer calls it at
// its start, and then again and again: v1 has nothing that wakes it, so it looks every few
// seconds. The context should outlast 45 s, for so long a lock is waited for.
func round(ctx context.Context, store *holdfast.Store, send func([]byte) error) error {
	batch, err := store.LoadPending(ctx, &holdfast.BatchOptions{Limit: 100})
	for _, skipped := range batch.Skipped {
		if errors.Is(skipped.Err, holdfast.ErrInvalidJSON) { // it will never be better
			err = errors.Join(err, store.FailID(ctx, skipped.ID))
		}
	}
	for _, claim := range batch.Claims {
		settle := store.Ack
		if send(claim.Payload) != nil {
			settle = store.Fail
		}
		// ErrAlreadyExists: the failed directory has another entry of this ID. It and
		// the claim stay, and the claim comes again, until one of the two is moved away.
		err = errors.Join(err, settle(ctx, claim), claim.Close())
	}
	// A process that was killed inside a transition leaves a lock. Nobody takes it over:
	// prove that the process is gone, then call store.RemoveLock(held.Lock.File).
	var held *holdfast.LockError
	if errors.As(err, &held) && errors.Is(err, holdfast.ErrLockStale) {
		log.Printf("%s of owner %s, %v old", held.Lock.File, held.Lock.Owner, held.Lock.Age)
	}
	return err
}

// A consumer of a directory that JavaScript producers write to, on a phone.
func Example_consumer() {
	dir, err := os.MkdirTemp("", "holdfast-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := holdfast.OpenOrCreate(filepath.Join(dir, "queue"), &holdfast.Options{
		FailedDir: filepath.Join(dir, "failed"),
		ClaimBy:   holdfast.RenameNoReplace, // the phone refuses hard links
	})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	ctx := context.Background()
	for _, id := range []string{"ann", "bob"} {
		if _, err := store.Enqueue(ctx, id, []byte(`"for `+id+`"`)); err != nil {
			log.Fatal(err)
		}
	}

	err = round(ctx, store, func(payload []byte) error {
		fmt.Printf("%s\n", payload)
		if string(payload) == `"for bob"` {
			return errors.New("no such address")
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	status, err := store.Status(ctx)
	fmt.Println(status.Pending, status.Processing, status.Failed, err)
	// Output:
	// "for ann"
	// "for bob"
	// 0 0 1 <nil>
}
