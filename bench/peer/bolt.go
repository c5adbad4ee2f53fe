//go:build unix

package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Bolt is a hand-made queue in bbolt, a transaction for each call.
func Bolt() Peer {
	return Peer{
		Key: "bolt", Name: "bbolt",
		How: "A hand-made queue in bbolt: a bucket of what is pending and one of what is claimed, in order of a sequence number; a transaction for each call.",
		Open: func(_ context.Context, dir string) (Queue, error) {
			return openBolt(dir, func(db *bolt.DB) boltRun { return db.Update })
		},
		OneProcess: true,
	}
}

// BoltBatch is the same queue with bbolt's way of taking concurrent calls together. size
// bounds a group; zero leaves bbolt's own bound and its wait of 10 ms for company.
func BoltBatch(key, how string, size, minWorkers int) Peer {
	p := Bolt()
	p.Key, p.Name, p.MinWorkers = key, "bbolt, `db.Batch` "+how, max(minWorkers, 2)
	p.How = "The same queue through `db.Batch` with its defaults: groups of at most 1,000 calls, waiting up to 10 ms for them."
	if size > 0 {
		p.How = fmt.Sprintf("The same with groups of at most %d, waiting up to %v.", size, boltDelay)
	}
	p.Open = func(_ context.Context, dir string) (Queue, error) {
		return openBolt(dir, func(db *bolt.DB) boltRun {
			if size > 0 {
				db.MaxBatchSize, db.MaxBatchDelay = size, boltDelay
			}
			return db.Batch
		})
	}
	return p
}

// boltDelay is how long a group that is not full waits for company. A full one goes at
// once, and callers that were answered together come back together: shorter waits, which
// cut such groups in two, were slower in every try.
const boltDelay = 5 * time.Millisecond

var (
	boltPending = []byte("pending")
	boltClaimed = []byte("claimed")
)

// A boltRun runs a function in a writing transaction, and may run it more than once.
type boltRun func(func(*bolt.Tx) error) error

type boltQueue struct {
	db  *bolt.DB
	run boltRun
}

func openBolt(dir string, how func(*bolt.DB) boltRun) (Queue, error) {
	// Another process would wait for the file for ever.
	db, err := bolt.Open(filepath.Join(dir, "queue.bolt"), 0o600, &bolt.Options{Timeout: time.Second})
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{boltPending, boltClaimed} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		db.Close() // the first error tells more
		return nil, err
	}
	return &boltQueue{db, how(db)}, nil
}

func (q *boltQueue) Enqueue(_ context.Context, payloads ...[]byte) error {
	return q.run(func(tx *bolt.Tx) error {
		b := tx.Bucket(boltPending)
		for _, p := range payloads {
			n, err := b.NextSequence()
			if err != nil {
				return err
			}
			if err := b.Put(binary.BigEndian.AppendUint64(nil, n), p); err != nil {
				return err
			}
		}
		return nil
	})
}

func (q *boltQueue) Claim(ctx context.Context, n int) ([]Claim, error) {
	return q.AckAndClaim(ctx, nil, n)
}

func (q *boltQueue) Ack(ctx context.Context, claims []Claim) error {
	_, err := q.AckAndClaim(ctx, claims, 0)
	return err
}

func (q *boltQueue) AckAndClaim(_ context.Context, claims []Claim, n int) (got []Claim, err error) {
	keys, err := tokens[string](claims)
	if err != nil {
		return nil, err
	}
	err = q.run(func(tx *bolt.Tx) error {
		got = nil // of a run that was rolled back
		pending, claimed := tx.Bucket(boltPending), tx.Bucket(boltClaimed)
		for _, key := range keys {
			if err := claimed.Delete([]byte(key)); err != nil {
				return err
			}
		}
		if n == 0 {
			return nil
		}
		// What a cursor stands on is not good any more once the bucket has changed.
		c := pending.Cursor()
		for k, v := c.First(); k != nil && len(got) < n; k, v = c.Next() {
			got = append(got, Claim{Payload: bytes.Clone(v), token: string(k)})
		}
		for _, g := range got {
			key := []byte(g.token.(string))
			if err := pending.Delete(key); err != nil {
				return err
			}
			if err := claimed.Put(key, g.Payload); err != nil {
				return err
			}
		}
		return nil
	})
	return got, err
}

func (q *boltQueue) Left(context.Context) (n int, err error) {
	err = q.db.View(func(tx *bolt.Tx) error {
		n = tx.Bucket(boltPending).Stats().KeyN + tx.Bucket(boltClaimed).Stats().KeyN
		return nil
	})
	return n, err
}

func (q *boltQueue) Close() error { return q.db.Close() }
