//go:build unix

package migrate

import (
	"context"

	v1 "example.com/holdfast/v1"
	v2 "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// listed is how many messages one look at the queue takes.
const listed = 1000

// free refuses an import beside another one into the queue, and one whose messages would
// meet others of the same ID: before it is opened, all at once. The store refuses them
// anyway, one batch after the other.
func (r *run) free(ctx context.Context, m *marker) error {
	all, err := r.store.Imports(ctx)
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.Queue == r.o.Queue && !i.Closed {
			return &v2.ImportingError{Queue: i.Queue, Token: i.Token}
		}
	}
	taken := map[side]bool{}
	err = eachListed(func(o queue.ListOptions) (queue.Page, error) {
		return r.store.List(ctx, r.o.Queue, o)
	}, func(e queue.Entry) {
		state := v1.EntryPending
		if e.State == queue.Processing || e.Returned != "" {
			state = v1.EntryClaimed
		}
		taken[side{e.ID, state}] = true
	})
	if err != nil {
		return err
	}
	if r.rep.Failed > 0 {
		st, err := r.store.Status(ctx, queue.StatusOptions{Queues: []string{r.o.Queue}})
		if err != nil {
			return err
		}
		space := queue.FailedOptions{Namespace: st.Queues[r.o.Queue].FailedNamespace}
		err = eachListed(func(o queue.ListOptions) (queue.Page, error) {
			return r.store.ListFailed(ctx, space, o)
		}, func(e queue.Entry) {
			taken[side{e.FailedName, v1.EntryFailed}] = true
		})
		if err != nil {
			return err
		}
	}
	var problems []Problem
	for _, e := range m.Entries {
		if e.Skipped || !taken[side{e.ID, e.file.State}] {
			continue
		}
		err := queue.ErrDuplicate
		if e.file.State == v1.EntryFailed {
			err = queue.ErrFailedExists
		}
		problems = append(problems, Problem{e.file.File, err})
	}
	if problems != nil {
		return &ProblemsError{ErrTaken, problems}
	}
	return nil
}

// eachListed goes through a list, page by page.
func eachListed(get func(queue.ListOptions) (queue.Page, error), see func(queue.Entry)) error {
	for o := (queue.ListOptions{Limit: listed}); ; {
		page, err := get(o)
		if err != nil {
			return err
		}
		for _, e := range page.Entries {
			see(e)
		}
		if o.After = page.Next; o.After == "" {
			return nil
		}
	}
}
