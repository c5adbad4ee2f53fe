//go:build unix

package holdfast

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/crashtest/testrun"
	"example.com/holdfast/internal/history"
	"example.com/holdfast/queue"
)

func interEnqueue(id string, exists queue.IfExists) history.Step {
	return history.Step{Op: history.Enqueue, Queue: "mail", IDs: []string{id}, IfExists: exists}
}

// makes gives a program of calls that need nothing of one another.
func makes(steps ...history.Step) func(c *interClient) {
	return func(c *interClient) {
		for _, st := range steps {
			c.do(st)
		}
	}
}

// claims claims one message in the name of its process, and acks it.
func claims(c *interClient) {
	claim := history.Step{Op: history.Claim, Queue: "mail", N: 1, Holder: c.Name()}
	for _, receipt := range c.do(claim).Receipts() {
		c.do(history.Step{Op: history.Ack, Receipt: receipt})
	}
}

// takes claims one message and keeps it.
func takes(c *interClient) {
	c.do(history.Step{Op: history.Claim, Queue: "mail", N: 1, Holder: c.Name()})
}

// settles acks what the set-up had claimed.
func settles(c *interClient) { c.do(history.Step{Op: history.Ack, Receipt: c.given[0]}) }

// recovers is an operator, and then enqueues.
func recovers(c *interClient) {
	c.recover()
	c.do(interEnqueue("a", queue.Refuse))
}

// creates makes the store, or finds that somebody else has, and uses it.
func creates(c *interClient) {
	ctx := context.Background()
	c.step("create")
	s, err := Create(ctx, crashDir, c.options())
	if errors.Is(err, ErrInterruptedInit) {
		if c.play.deaths == 0 {
			c.fail(err)
			return
		}
		s, err = ResumeCreate(ctx, crashDir, c.options())
	}
	made := err == nil
	if errors.Is(err, ErrExists) {
		s, err = Open(ctx, crashDir, c.options())
	}
	switch {
	case c.Dead():
		return
	case err != nil:
		c.fail(err)
		return
	case made:
		if c.play.made++; c.play.made > 1 {
			c.fail(errors.New("two were told that they have made the store"))
			return
		}
	}
	c.store = s
	c.do(interEnqueue("a", queue.Refuse))
}

// twice makes two calls on one open store at the same time.
func twice(c *interClient) {
	var both sync.WaitGroup
	both.Go(func() { c.do(interEnqueue("b", queue.Refuse)) })
	c.do(interEnqueue("a", queue.Refuse))
	both.Wait()
}

func withA(c *interCalls) { c.made(interEnqueue("a", queue.Refuse)) }

func withAB(c *interCalls) {
	withA(c)
	c.made(interEnqueue("b", queue.Refuse))
}

// withGone is withABC after the first message was acked: its object is an orphan, and so is
// what the next commits drop.
func withGone(c *interCalls) {
	withABC(c)
	c.made(history.Step{Op: history.Claim, Queue: "mail", N: 1, Holder: "setup"})
	c.made(history.Step{Op: history.Ack, Receipt: c.receipts[0]})
}

// withABC is as many as stand inline: the next one seals b and c in a run.
func withABC(c *interCalls) {
	withAB(c)
	c.made(interEnqueue("c", queue.Refuse))
}

// withLease is a, claimed by nobody in particular for a minute.
func withLease(c *interCalls) {
	withA(c)
	c.made(history.Step{Op: history.Claim, Queue: "mail", N: 1, Lease: time.Minute})
}

// withLateLease is withLease after that minute.
func withLateLease(c *interCalls) {
	withLease(c)
	c.made(history.Step{Op: history.Advance, Delay: 2 * time.Minute})
}

var reapMail = history.Step{Op: history.Reap, Queues: []string{"mail"}}

var interScenes = []*interScene{
	{name: "enqueue-enqueue", programs: []func(*interClient){
		makes(interEnqueue("a", queue.Refuse)),
		makes(interEnqueue("a", queue.Refuse), interEnqueue("a", queue.Keep)),
	}},
	{name: "claim-claim", setup: withAB, programs: []func(*interClient){claims, claims}},
	{name: "claim-claim-consent", consent: true, setup: withA, programs: []func(*interClient){claims, takes}},
	{name: "claim-reap", setup: withA, programs: []func(*interClient){takes, makes(reapMail, reapMail)}},
	{name: "late-worker", setup: withLateLease, programs: []func(*interClient){
		settles,
		func(c *interClient) { c.do(reapMail); takes(c) },
	}},
	{name: "collect-replace", setup: withGone, programs: []func(*interClient){collects, makes(interEnqueue("b", queue.Replace), interEnqueue("d", queue.Refuse))}},
	{name: "collect-claim", setup: withGone, programs: []func(*interClient){collects, claims}},
	{name: "replace-claim", setup: withA, programs: []func(*interClient){
		makes(interEnqueue("a", queue.Replace)),
		claims,
	}},
	{name: "update-clear", setup: withLease, programs: []func(*interClient){
		func(c *interClient) {
			c.do(history.Step{Op: history.Update, Changes: []history.Step{
				{Op: history.Ack, Receipt: c.given[0]}, interEnqueue("b", queue.Refuse),
			}})
		},
		makes(interEnqueue("b", queue.Refuse), history.Step{Op: history.Clear, Queue: "mail", Leased: true}),
	}},
	{name: "recover-enqueue", dead: true, programs: []func(*interClient){
		recovers,
		makes(interEnqueue("a", queue.Refuse)),
	}},
	{name: "consent-enqueue", dead: true, consent: true, setup: withA, programs: []func(*interClient){
		makes(interEnqueue("b", queue.Refuse)),
		claims,
	}},
	{name: "create-create", absent: true, programs: []func(*interClient){creates, creates}},
	{name: "two-calls", setup: withA, programs: []func(*interClient){
		twice,
		makes(history.Step{Op: history.Claim, Queue: "mail", N: 3}),
	}},
	{name: "three-enqueue", programs: []func(*interClient){
		makes(interEnqueue("a", queue.Refuse)),
		makes(interEnqueue("a", queue.Replace)),
		takes,
	}},
	{name: "three-claim", consent: true, setup: withA, programs: []func(*interClient){takes, takes, claims}},
	{name: "seal-claim", setup: withABC, programs: []func(*interClient){
		makes(interEnqueue("d", queue.Refuse), interEnqueue("b", queue.Replace)),
		makes(history.Step{Op: history.Claim, Queue: "mail", N: 3}),
	}},
	{name: "three-late", setup: withLateLease, programs: []func(*interClient){settles, makes(reapMail), takes}},
}

// interBounds says how much is explored of a scene. What is short and thorough is for
// planted bugs. Where not everything is, two scenes stand for all in their deaths.
func interBounds(scene string) crashtest.InterleaveOptions {
	o := crashtest.InterleaveOptions{Preemptions: 1, MaxSchedules: 80, Random: 10, Kills: 1, Losses: 1, MaxImages: 1}
	thorough := testrun.Thorough()
	switch {
	case thorough && !raceDetector() && !testing.Short() && strings.HasPrefix(scene, "collect-"):
		return crashtest.InterleaveOptions{Losses: 1, Preemptions: 1, MaxSchedules: 150, Random: 50} // its operations are many
	case thorough && !raceDetector() && !testing.Short():
		return crashtest.InterleaveOptions{MaxSchedules: 100, Random: 20, Kills: 1, Losses: 1}
	case thorough && !raceDetector():
	default:
		o.MaxSchedules, o.Random = 10, 3
	}
	if scene != "claim-claim-consent" && scene != "seal-claim" || testing.Short() && !thorough || raceDetector() {
		o.Kills = -1
	}
	return o
}

// Whatever the order of their operations, and whoever of them dies at whatever step,
// what the processes of a store were told and what is there in the end is what one call
// after another would have given.
func TestInterleave(t *testing.T) {
	for _, scene := range interScenes {
		t.Run(scene.name, func(t *testing.T) {
			t.Parallel()
			crashtest.Interleave(t, scene.interleaving(), interBounds(scene.name))
		})
	}
}
