// Package forms has the JSON forms of what a store tells, which the command and the server
// share: each fact has one name. The doc tags describe them in the server's OpenAPI document.
// Who embeds a form adds what it has besides, the payload foremost.
package forms

import "time"

// Enqueued is queue.Enqueued.
type Enqueued struct {
	Queue      string `json:"queue"`
	ID         string `json:"id"`
	Generation string `json:"generation" doc:"names this acceptance"`
	Revision   uint64 `json:"revision" doc:"the store's, in which it became durable"`
	Kept       bool   `json:"kept,omitempty" doc:"the ID was live and if_exists said keep: this is the live one"`
}

// OrNull makes a zero time null.
func OrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
