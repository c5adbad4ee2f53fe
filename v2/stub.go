//go:build unix

// Stub: replaced as the store is written.
package holdfast

import (
	"context"
	"errors"
	"time"

	"example.com/holdfast/queue"
)

var errStub = errors.New("stub")

type Store struct{}
type Recovery struct {
	Owner        *queue.Owner
	Revision     uint64
	TempsRemoved int
}
type VerifyOptions struct{ Progress func(done, total int64) }
type Fault struct {
	Code   string `json:"code"`
	File   string `json:"file"`
	Queue  string `json:"queue,omitempty"`
	ID     string `json:"id,omitempty"`
	Reason string `json:"reason"`
}
type Report struct {
	OK           bool         `json:"ok"`
	Faults       []Fault      `json:"faults"`
	Store        string       `json:"store"`
	Revision     uint64       `json:"revision"`
	Settled      bool         `json:"settled"`
	Messages     int64        `json:"messages"`
	Failed       int64        `json:"failed"`
	Objects      int64        `json:"objects"`
	PayloadBytes int64        `json:"payload_bytes"`
	Orphans      int64        `json:"orphans"`
	OrphanBytes  int64        `json:"orphan_bytes"`
	Temps        int64        `json:"temps"`
	Owner        *queue.Owner `json:"owner"`
}

func Create(ctx context.Context, dir string, o *Options) (*Store, error)       { return nil, errStub }
func ResumeCreate(ctx context.Context, dir string, o *Options) (*Store, error) { return nil, errStub }
func Open(ctx context.Context, dir string, o *Options) (*Store, error)         { return nil, errStub }
func OpenOrCreate(ctx context.Context, dir string, o *Options) (*Store, error) { return nil, errStub }
func OpenReadOnly(ctx context.Context, dir string, o *Options) (*Store, error) { return nil, errStub }
func VerifyDir(ctx context.Context, dir string, o *Options, v VerifyOptions) (Report, error) {
	return Report{}, errStub
}
func (s *Store) ID() string                                    { return "" }
func (s *Store) Recover(ctx context.Context) (Recovery, error) { return Recovery{}, errStub }
func (s *Store) Resolve(ctx context.Context, u *queue.UncertainError) (bool, error) {
	return false, errStub
}
func (s *Store) Settings(ctx context.Context) (Settings, error) { return Settings{}, errStub }
func (s *Store) Set(ctx context.Context, set Settings) error    { return errStub }
func (s *Store) Verify(ctx context.Context, o VerifyOptions) (Report, error) {
	return Report{}, errStub
}
func (s *Store) Enqueue(ctx context.Context, q string, m queue.Message) (queue.Enqueued, error) {
	return queue.Enqueued{}, errStub
}
func (s *Store) EnqueueBatch(ctx context.Context, q string, ms []queue.Message) ([]queue.Enqueued, error) {
	return nil, errStub
}
func (s *Store) Claim(ctx context.Context, q string, o queue.ClaimOptions) (queue.Claimed, error) {
	return queue.Claimed{}, errStub
}
func (s *Store) Load(ctx context.Context, q, id string, o queue.LoadOptions) (queue.Delivery, error) {
	return queue.Delivery{}, errStub
}
func (s *Store) Ack(ctx context.Context, r queue.Receipt) error { return errStub }
func (s *Store) Release(ctx context.Context, r queue.Receipt, o queue.ReleaseOptions) error {
	return errStub
}
func (s *Store) Retry(ctx context.Context, r queue.Receipt, o queue.RetryOptions) (queue.Returned, error) {
	return queue.Returned{}, errStub
}
func (s *Store) Extend(ctx context.Context, r queue.Receipt, lease time.Duration) (time.Time, error) {
	return time.Time{}, errStub
}
func (s *Store) Fail(ctx context.Context, r queue.Receipt, o queue.FailOptions) (string, error) {
	return "", errStub
}
func (s *Store) ReplacePayload(ctx context.Context, r queue.Receipt, payload []byte) error {
	return errStub
}
func (s *Store) Reap(ctx context.Context, o queue.ReapOptions) ([]queue.Returned, error) {
	return nil, errStub
}
func (s *Store) Reprocess(ctx context.Context, name string, o queue.ReprocessOptions) error {
	return errStub
}
func (s *Store) Clear(ctx context.Context, q string, o queue.ClearOptions) (uint64, error) {
	return 0, errStub
}
func (s *Store) Purge(ctx context.Context, name string, o queue.PurgeOptions) error { return errStub }
func (s *Store) Pause(ctx context.Context, q string) error                          { return errStub }
func (s *Store) Resume(ctx context.Context, q string) error                         { return errStub }
func (s *Store) Update(ctx context.Context, changes ...queue.Change) ([]queue.Outcome, error) {
	return nil, errStub
}
func (s *Store) Cursor(ctx context.Context, q string) (string, error) { return "", errStub }
func (s *Store) Peek(ctx context.Context, q string, n int) ([]queue.Entry, error) {
	return nil, errStub
}
func (s *Store) List(ctx context.Context, q string, o queue.ListOptions) (queue.Page, error) {
	return queue.Page{}, errStub
}
func (s *Store) Show(ctx context.Context, q, id string) ([]queue.Entry, error) { return nil, errStub }
func (s *Store) ListFailed(ctx context.Context, f queue.FailedOptions, o queue.ListOptions) (queue.Page, error) {
	return queue.Page{}, errStub
}
func (s *Store) ShowFailed(ctx context.Context, name string, f queue.FailedOptions) (queue.Entry, error) {
	return queue.Entry{}, errStub
}
func (s *Store) Status(ctx context.Context, o queue.StatusOptions) (queue.Status, error) {
	return queue.Status{}, errStub
}
func (s *Store) Wait(ctx context.Context, o queue.WaitOptions) (queue.Status, error) {
	return queue.Status{}, errStub
}
func (s *Store) Close() error { return nil }

var _ queue.Store = (*Store)(nil)
