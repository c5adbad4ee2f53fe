//go:build unix && cgo

package peer

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"

	_ "github.com/mattn/go-sqlite3"
	"maragu.dev/goqite"
)

// Goqite is goqite on SQLite.
func Goqite() Peer {
	return Peer{
		Key: "goqite", Name: "goqite (SQLite)",
		How: "goqite on mattn/go-sqlite3, as its documentation sets it up: one connection, WAL, a busy timeout of 5 s; " +
			"`synchronous=FULL`, so that a commit is durable when it returns; write transactions begin as such.",
		Open: openGoqite,
	}
}

type goqiteQueue struct {
	db *sql.DB
	q  *goqite.Queue
}

func openGoqite(ctx context.Context, dir string) (Queue, error) {
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "queue.db")+
		"?_journal=WAL&_synchronous=FULL&_timeout=5000&_fk=true&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	if err := goqiteTables(ctx, db); err != nil {
		db.Close() // the first error tells more
		return nil, err
	}
	return &goqiteQueue{db, goqite.New(goqite.NewOpts{DB: db, Name: queueName, Timeout: lease})}, nil
}

func goqiteTables(ctx context.Context, db *sql.DB) error {
	var n int
	err := db.QueryRowContext(ctx, `select count(*) from sqlite_master where name = 'goqite'`).Scan(&n)
	if err != nil || n > 0 {
		return err
	}
	schema, err := goqiteSchema()
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, schema)
	return err
}

// goqiteSchema is the module's own. It is a file beside its source and not embedded, so it
// is read from where that was when this program was built.
func goqiteSchema() (string, error) {
	source, _ := runtime.FuncForPC(reflect.ValueOf(goqite.New).Pointer()).FileLine(0)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(source), "schema_sqlite.sql"))
	if err != nil {
		return "", fmt.Errorf("goqite's schema, in the module cache of the build: %w", err)
	}
	return string(text), nil
}

// inTx makes one transaction of what f does.
func (q *goqiteQueue) inTx(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := q.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		tx.Rollback() // the first error tells more
		return err
	}
	return tx.Commit()
}

func (q *goqiteQueue) Enqueue(ctx context.Context, payloads ...[]byte) error {
	return q.inTx(ctx, func(tx *sql.Tx) error {
		for _, p := range payloads {
			if err := q.q.SendTx(ctx, tx, goqite.Message{Body: p}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (q *goqiteQueue) Claim(ctx context.Context, n int) ([]Claim, error) {
	return q.AckAndClaim(ctx, nil, n)
}

func (q *goqiteQueue) Ack(ctx context.Context, claims []Claim) error {
	_, err := q.AckAndClaim(ctx, claims, 0)
	return err
}

func (q *goqiteQueue) AckAndClaim(ctx context.Context, claims []Claim, n int) (got []Claim, err error) {
	ids, err := tokens[goqite.ID](claims)
	if err != nil {
		return nil, err
	}
	err = q.inTx(ctx, func(tx *sql.Tx) error {
		for _, id := range ids {
			if err := q.q.DeleteTx(ctx, tx, id); err != nil {
				return err
			}
		}
		for range n {
			m, err := q.q.ReceiveTx(ctx, tx)
			if err != nil {
				return err
			}
			if m == nil {
				return nil
			}
			got = append(got, Claim{Payload: m.Body, token: m.ID})
		}
		return nil
	})
	return got, err
}

func (q *goqiteQueue) Left(ctx context.Context) (n int, err error) {
	return n, q.db.QueryRowContext(ctx, `select count(*) from goqite`).Scan(&n)
}

func (q *goqiteQueue) Close() error { return q.db.Close() }
