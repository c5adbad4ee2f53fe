//go:build unix

package holdfast

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/queue"
)

func mustLook(t testing.TB, s *Store) string {
	got, err := look(s)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// asideSpace is the one failed namespace beside the default one that look sees.
const asideSpace = "aside"

// look tells everything about a store but what is random: tokens and revisions.
// Queue "probe" is the harness's own.
func look(s *Store) (string, error) {
	ctx := context.Background()
	var b strings.Builder
	status, err := s.Status(ctx, queue.StatusOptions{})
	if err != nil {
		return "", err
	}
	settings, err := s.Settings(ctx)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "settings %+v\n", settings)
	var names []string
	for name := range status.Queues {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if name == "probe" {
			continue
		}
		fmt.Fprintf(&b, "queue %s %+v\n", name, status.Queues[name])
		cursor, err := s.Cursor(ctx, name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "  cursor %q\n", cursor)
		page, err := s.List(ctx, name, queue.ListOptions{})
		if err != nil {
			return "", err
		}
		for _, e := range page.Entries {
			shown, err := s.Show(ctx, name, e.ID)
			if err != nil {
				return "", err
			}
			for _, x := range shown {
				if x.Seq == e.Seq {
					fmt.Fprintf(&b, "  %s\n", describe(x))
				}
			}
		}
	}
	for _, space := range []string{"", asideSpace} {
		failed, err := s.ListFailed(ctx, queue.FailedOptions{Namespace: space}, queue.ListOptions{})
		if err != nil {
			return "", err
		}
		for _, e := range failed.Entries {
			x, err := s.ShowFailed(ctx, e.FailedName, queue.FailedOptions{Namespace: space})
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "failed %s %s from %s: %s\n", space, x.FailedName, x.Queue, describe(x))
		}
	}
	return b.String(), nil
}

func describe(e queue.Entry) string {
	payload := string(e.Payload)
	if len(payload) > 40 {
		payload = fmt.Sprintf("%s… (%d bytes, %08x)", payload[:20], len(payload), checksum(e.Payload))
	}
	return fmt.Sprintf("%s %s %s seq=%d attempts=%d excused=%d lapses=%d back=%q deadline=%d label=%q fence=%d key=%q error=%q %s",
		e.ID, e.State, e.NotBefore.UTC(), e.Seq, e.Attempts, e.Excused, e.Lapses, e.Returned, e.Deadline.UnixMilli(), e.Label, e.Fence, e.Key, e.LastError, payload)
}
