//go:build unix

package peer

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/redis/go-redis/v9"
)

// Redis is a reliable queue of two lists in a Redis of its own.
func Redis() Peer {
	p := Peer{
		Key: "redis", Name: "Redis, always",
		How: "A Redis of its own on a private socket, `appendonly yes`, `appendfsync always`, no snapshots; one list of what is pending and one of what is claimed: " +
			"`RPUSH`, `LMOVE`, `LREM` from the end where the newest claims are; several in one `MULTI`; a connection for each goroutine.",
		Open: openRedis,
	}
	if _, err := exec.LookPath(redisServer); err != nil {
		p.Missing = redisServer + " is not installed"
	}
	return p
}

const (
	redisPending = queueName + ":pending"
	redisClaimed = queueName + ":claimed"
)

type redisQueue struct {
	c      *redis.Client
	server *redisProcess // nil: somebody else's
	socket string
}

func openRedis(ctx context.Context, dir string) (Queue, error) {
	server, socket, err := startRedis(ctx, dir)
	if err != nil {
		return nil, err
	}
	// No second try: a call that was repeated behind our back could double a message.
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, PoolSize: 256, MaxRetries: -1})
	q := &redisQueue{c: c, server: server, socket: socket}
	if err := c.Ping(ctx).Err(); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

func (q *redisQueue) Enqueue(ctx context.Context, payloads ...[]byte) error {
	values := make([]any, len(payloads))
	for i, p := range payloads {
		values[i] = p
	}
	return q.c.RPush(ctx, redisPending, values...).Err()
}

func (q *redisQueue) Claim(ctx context.Context, n int) ([]Claim, error) {
	return q.AckAndClaim(ctx, nil, n)
}

func (q *redisQueue) Ack(ctx context.Context, claims []Claim) error {
	_, err := q.AckAndClaim(ctx, claims, 0)
	return err
}

func (q *redisQueue) AckAndClaim(ctx context.Context, claims []Claim, n int) ([]Claim, error) {
	var removed []*redis.IntCmd
	var moved []*redis.StringCmd
	add := func(p redis.Cmdable) {
		for _, c := range claims {
			removed = append(removed, p.LRem(ctx, redisClaimed, -1, c.Payload))
		}
		for range n {
			moved = append(moved, p.LMove(ctx, redisPending, redisClaimed, "LEFT", "RIGHT"))
		}
	}
	if len(claims)+n == 1 {
		add(q.c)
	} else {
		// The answers to the commands are looked at below, each for itself.
		_, err := q.c.TxPipelined(ctx, func(p redis.Pipeliner) error { add(p); return nil })
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, err
		}
	}
	for _, r := range removed {
		if n, err := r.Result(); err != nil || n != 1 {
			return nil, errors.Join(fmt.Errorf("LREM removed %d", n), err)
		}
	}
	var got []Claim
	for _, m := range moved {
		p, err := m.Bytes()
		if errors.Is(err, redis.Nil) {
			break
		}
		if err != nil {
			return nil, err
		}
		got = append(got, Claim{Payload: p})
	}
	return got, nil
}

func (q *redisQueue) Left(ctx context.Context) (int, error) {
	pending, err := q.c.LLen(ctx, redisPending).Result()
	if err != nil {
		return 0, err
	}
	claimed, err := q.c.LLen(ctx, redisClaimed).Result()
	return int(pending + claimed), err
}

func (q *redisQueue) Processes() []int {
	if q.server == nil {
		return nil
	}
	return []int{q.server.cmd.Process.Pid}
}

func (q *redisQueue) Close() error {
	err := q.c.Close()
	if q.server != nil {
		err = errors.Join(err, q.server.stop())
	}
	return err
}
