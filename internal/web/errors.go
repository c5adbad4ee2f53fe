//go:build unix

package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"example.com/holdfast/internal/forms"
	"example.com/holdfast/queue"
)

// Codes are those of the server itself, with their HTTP status. All others are the
// command's, of Config.Classify.
var Codes = map[string]int{
	"unauthorized":   http.StatusUnauthorized,
	"host":           http.StatusForbidden,
	"cross_origin":   http.StatusForbidden,
	"no_route":       http.StatusNotFound,
	"method":         http.StatusMethodNotAllowed,
	"media_type":     http.StatusUnsupportedMediaType,
	"body_too_large": http.StatusRequestEntityTooLarge,
	"bad_request":    http.StatusBadRequest,
	"too_many_waits": http.StatusServiceUnavailable,
}

// statuses are by the command's exit codes.
var statuses = map[int]int{
	1: http.StatusNotFound,
	2: http.StatusBadRequest,
	3: http.StatusServiceUnavailable, // the operator is wanted, and nothing else helps
	4: http.StatusInternalServerError,
	5: http.StatusConflict,
}

// statusOf gives the HTTP status of a code of the command's.
func statusOf(code string, exit int) int {
	switch code {
	case "too_large":
		return http.StatusRequestEntityTooLarge
	case "full":
		return http.StatusInsufficientStorage
	case "cancelled", "timed_out", "closed":
		return http.StatusServiceUnavailable
	}
	if status, ok := statuses[exit]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// An ownError is one of the server's own, with its code.
type ownError struct{ code, text string }

func (e *ownError) Error() string { return e.text }

func badf(format string, args ...any) error {
	return &ownError{"bad_request", fmt.Sprintf(format, args...)}
}

// An errorLine is what an error looks like. Code is stable, Error is for people.
type errorLine struct {
	Error string `json:"error" doc:"for people"`
	Code  string `json:"code" doc:"stable: for programs"`
	Exit  int    `json:"exit,omitempty" doc:"the exit code that the command has for it"`

	Queue      string        `json:"queue,omitempty"`
	ID         string        `json:"id,omitempty"`
	Attempt    uint64        `json:"attempt,omitempty" doc:"of the receipt that is no longer good"`
	Current    uint64        `json:"current_attempt,omitempty" doc:"of the message now; left out when it is gone"`
	FailedName string        `json:"failed_name,omitempty"`
	Refused    []refusalLine `json:"refused,omitempty" doc:"of a batch, each message that was refused"`

	Revision  uint64           `json:"revision,omitempty" doc:"of an uncertain commit, if it happened"`
	Uncertain bool             `json:"uncertain,omitempty" doc:"it may have happened or not"`
	Enqueued  []forms.Enqueued `json:"enqueued,omitempty" doc:"of an uncertain enqueue: what is there if it happened"`
}

type refusalLine struct {
	Index int    `json:"index" doc:"in the batch, from 0"`
	Code  string `json:"code"`
	Error string `json:"error"`
}

// told gives an error's form and HTTP status.
func (s *Server) told(err error) (errorLine, int) {
	var own *ownError
	if errors.As(err, &own) {
		return errorLine{Error: own.text, Code: own.code}, Codes[own.code]
	}
	l := errorLine{Error: strings.ReplaceAll(err.Error(), "\n", " ")}
	l.Code, l.Exit = s.Classify(err)
	var lost *queue.LostError
	var damaged *queue.DamagedError
	var batch *queue.BatchError
	var open *queue.UncertainError
	switch {
	case errors.As(err, &open):
		l.Uncertain, l.Revision, l.Enqueued = true, open.Revision, enqueuedLines(open.Enqueued)
	case errors.As(err, &lost):
		l.Queue, l.ID, l.Attempt, l.Current = lost.Queue, lost.ID, lost.Attempt, lost.Current
	case errors.As(err, &damaged):
		l.Queue, l.ID, l.FailedName = damaged.Queue, damaged.ID, damaged.FailedName
	case errors.As(err, &batch):
		for _, r := range batch.Refused {
			code, _ := s.Classify(r.Err)
			l.Refused = append(l.Refused, refusalLine{r.Index, code, r.Err.Error()})
		}
	}
	return l, statusOf(l.Code, l.Exit)
}

// refuse answers with an error of the server's own.
func refuse(w http.ResponseWriter, code, text string) {
	writeJSON(w, Codes[code], errorLine{Error: text, Code: code})
}

// certain asks the store what became of an uncertain commit. Committed: u has what the call
// would have returned, and a refusal that it would have met is the error. Not committed: an
// error that says so. Where the store cannot tell, the uncertain error stays.
func (s *Server) certain(ctx context.Context, err error) (*queue.UncertainError, error) {
	var u *queue.UncertainError
	if !errors.As(err, &u) {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resolveWithin)
	defer cancel()
	committed, askErr := s.Store.Resolve(ctx, u)
	switch {
	case askErr != nil:
		return nil, fmt.Errorf("%w (asked again: %v)", err, askErr)
	case !committed:
		return nil, fmt.Errorf("nothing happened: the commit failed: %w", u.Err)
	}
	return u, u.Refused
}
