//go:build unix

package main

import (
	"errors"
	"strings"

	"example.com/holdfast/migrate"
	v1 "example.com/holdfast/v1"
)

// importLine is the fixed machine form of an import and of a dry run.
type importLine struct {
	Queue        string        `json:"queue"`
	Store        string        `json:"store"`
	FailedDir    string        `json:"failed_dir"` // empty: none was given
	Import       string        `json:"import"`     // its token; empty: a dry run
	DryRun       bool          `json:"dry_run"`
	Resumed      bool          `json:"resumed"`
	Closed       bool          `json:"closed"`
	Claimed      int           `json:"claimed"`
	Pending      int           `json:"pending"`
	Failed       int           `json:"failed"`
	Bytes        int64         `json:"bytes"`
	Added        int           `json:"added"`
	Recovered    []string      `json:"recovered"`
	LocksRemoved []lockLine    `json:"locks_removed"`
	LocksMissing []string      `json:"locks_missing"`
	Skipped      []problemLine `json:"skipped"`
	Delivered    []string      `json:"delivered"`
	Temps        []string      `json:"temporary"`
	Strays       []string      `json:"other"`
}

type problemLine struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

type lockLine struct {
	File  string  `json:"file"`
	ID    string  `json:"id"`
	Owner string  `json:"owner"`
	Age   float64 `json:"age_seconds"`
}

// removalLine is that of --remove-source.
type removalLine struct {
	Queue   string        `json:"queue"`
	Import  string        `json:"import"`
	Removed int           `json:"removed"`
	Gone    int           `json:"gone"`
	Kept    []problemLine `json:"kept"`
	Left    []string      `json:"left"`

	FailedGone string `json:"failed_gone,omitempty"` // the failed directory, if it is not there any more
}

func problemLines(problems []migrate.Problem) []problemLine {
	out := []problemLine{}
	for _, p := range problems {
		out = append(out, problemLine{p.File, strings.TrimPrefix(p.String(), p.File+": ")})
	}
	return out
}

func lockLines(locks []v1.HeldLock) []lockLine {
	out := []lockLine{}
	for _, l := range locks {
		out = append(out, lockLine{l.File, l.ID, l.Owner, l.Age.Seconds()})
	}
	return out
}

func orEmpty(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

func (a *app) printImport(c *importCall, r migrate.Report) {
	if a.json {
		a.printJSON(importLineOf(r))
		return
	}
	imported, left := "imported", "left where it is"
	if r.DryRun {
		imported, left = "would import", "would leave where it is"
	}
	a.printf("%s %s into %s: %d claimed, %d pending, %d failed; %d bytes\n", imported, plural(int64(messages(r)), "message"), r.Queue,
		r.Claimed, r.Pending, r.Failed, r.Bytes)
	switch {
	case r.Resumed && r.DryRun:
		a.printf("would go on with an import that was begun\n")
	case r.Resumed:
		a.printf("went on with an import that had been begun; %s came now\n", plural(int64(r.Added), "message"))
	}
	if r.FailedDir == "" {
		a.printf("no --failed was given: what is set aside is not imported\n")
	}
	a.printTouched(r)
	for _, p := range r.Skipped {
		a.printf("%s: %s\n", left, printable(p.String()))
	}
	for _, other := range []struct {
		what  string
		names []string
	}{
		{"markers of work that was done", r.Delivered}, {"temporary files", r.Temps}, {"no entries", r.Strays},
	} {
		if len(other.names) > 0 {
			a.printf("not imported, %s: %s\n", other.what, printable(strings.Join(other.names, ", ")))
		}
	}
	if r.DryRun {
		a.printf("dry run: nothing was changed\n")
		return
	}
	a.printf("the old files are still in %s; to remove them, when nobody goes back: %s\n", printable(c.from),
		a.importCommand(c, "--remove-source"))
}

func importLineOf(r migrate.Report) importLine {
	return importLine{
		r.Queue, r.Store, r.FailedDir, r.Token, r.DryRun, r.Resumed, r.Closed, r.Claimed, r.Pending, r.Failed, r.Bytes, r.Added,
		orEmpty(r.Recovered), lockLines(r.LocksRemoved), orEmpty(r.LocksMissing), problemLines(r.Skipped), orEmpty(r.Delivered),
		orEmpty(r.Temps), orEmpty(r.Strays),
	}
}

// printTouched tells what was done to the v1 directory itself.
func (a *app) printTouched(r migrate.Report) {
	finished, removed := "finished", "removed"
	if r.DryRun {
		finished, removed = "would finish", "would remove"
	}
	if len(r.Recovered) > 0 {
		a.printf("%s what was interrupted of: %s\n", finished, strings.Join(r.Recovered, ", "))
	}
	for _, l := range r.LocksRemoved {
		a.printf("%s the lock %s\n", removed, printable(migrate.LockText(l)))
	}
	for _, file := range r.LocksMissing {
		a.printf("no lock of that name stands: %s\n", printable(file))
	}
}

// printUnfinished tells what was done before an error: that has happened all the same.
func (a *app) printUnfinished(r migrate.Report) {
	switch {
	case r.DryRun && len(r.LocksMissing) == 0, len(r.Recovered)+len(r.LocksRemoved)+len(r.LocksMissing)+r.Added == 0:
	case a.json:
		a.printJSON(importLineOf(r))
	default:
		if r.DryRun {
			r.Recovered, r.LocksRemoved = nil, nil // would be
		}
		a.printTouched(r)
	}
}

func (a *app) printAbandoned(c *importCall, r migrate.Report) {
	if a.json {
		a.printJSON(struct {
			Queue  string `json:"queue"`
			Import string `json:"import"`
			Result string `json:"result"`
		}{r.Queue, r.Token, "abandoned"})
		return
	}
	a.printf("took back import %s: queue %s is as it was before\n", r.Token, r.Queue)
	if c.from == "" {
		a.printf("if its directories still are, their markers %s are too: from open ones a later import goes on under the same token; closed ones are refused, and say what to do\n", v1.MarkerFile)
	}
}

func (a *app) printRemoval(c *importCall, r migrate.Removal) {
	if a.json {
		a.printJSON(removalLine{r.Queue, r.Token, r.Removed, r.Gone, problemLines(r.Kept), orEmpty(r.Left), r.FailedGone})
		return
	}
	a.printf("removed %s that had been imported into %s", plural(int64(r.Removed), "file"), r.Queue)
	if r.Gone > 0 {
		a.printf("; %d were gone before", r.Gone)
	}
	a.printf("\n")
	if r.FailedGone != "" {
		a.printf("the failed directory %s is not there: nothing was to be removed in it; if it was moved, name it (--failed)\n", printable(r.FailedGone))
	}
	for _, p := range r.Kept {
		a.printf("left, for it is not what was imported: %s\n", printable(p.String()))
	}
	if len(r.Left) > 0 {
		a.printf("left in the directories: %s\n", printable(strings.Join(r.Left, ", ")))
	}
}

// printProblems tells every file or lock that an error is about, a line each: the error
// itself names only the first few.
func (a *app) printProblems(err error) {
	var files *migrate.ProblemsError
	var locks *migrate.LocksError
	var records *migrate.RecordsError
	var lines []problemLine
	switch {
	case errors.As(err, &files):
		lines = problemLines(files.Problems)
	case errors.As(err, &locks):
		for _, l := range locks.Locks {
			if a.json {
				a.printJSON(lockLines([]v1.HeldLock{l})[0])
			} else {
				a.printf("%s\n", printable(migrate.LockText(l)))
			}
		}
	case errors.As(err, &records):
		for _, r := range records.Records {
			lines = append(lines, problemLine{r.File, r.Why})
		}
	}
	for _, l := range lines {
		if a.json {
			a.printJSON(l)
		} else {
			a.printf("%s: %s\n", printable(l.File), printable(l.Reason))
		}
	}
}
