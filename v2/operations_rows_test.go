//go:build unix

package holdfast

import (
	"path"
	"slices"

	"example.com/holdfast/internal/fsguard"
)

// The rows of docs/crash-points.md, by what a crash right after an operation leaves. They
// follow from what the disk then shows, and from which of its changes were synced; not
// from which operation it was.

// rows gives the keys for the k-th operation of a run.
func (r opRun) rows(k int) []string {
	after := r.ops[k].After
	switch r.kind {
	case anOpening:
		return []string{"C9"}
	case aCreation:
		return r.creating(k)
	case aRestoration:
		return []string{r.restoring(k)}
	case aResolving:
		return []string{"R6"}
	case aResolved:
		return []string{"R7"}
	}
	switch {
	case r.before.record != blankOne:
		return r.recovering(k)
	}
	var rows []string
	switch {
	case r.collects():
		rows = append(rows, r.collecting(k))
	case after.state != r.before.state:
		rows = append(rows, r.after(k))
	case after.record == blankOne:
		rows = append(rows, "A1")
	case r.before.reserve && !after.reserve:
		rows = append(rows, "A11")
	case len(after.spares) < len(r.before.spares):
		rows = append(rows, "A12")
	default:
		rows = append(rows, r.within(k)...)
	}
	return append(rows, r.holding(k)...)
}

// collects reports whether the run removes objects, or takes the lock for that, without an
// owner's record.
func (r opRun) collects() bool {
	takes := false
	for _, op := range r.ops {
		if op.After.record != blankOne {
			return false
		}
		takes = takes || op.Op == fsguard.OpRemoveDir
	}
	return takes
}

// collecting is a hold that removes.
func (r opRun) collecting(k int) string {
	row := "A1"
	for _, op := range r.ops[:k+1] {
		switch {
		case op.Op == fsguard.OpLock && op.Path == namespaceDir+"/"+objectsDir, op.Op == fsguard.OpSyncDir:
			row = "G1"
		case op.Op == fsguard.OpRemove && path.Base(op.Path) == payloadFile:
			row = "G2"
		case op.Op == fsguard.OpRemove, op.Op == fsguard.OpRemoveDir:
			row = "G3"
		}
	}
	return row
}

// within is between the owner record and the new state.
func (r opRun) within(k int) (rows []string) {
	after := r.ops[k].After
	if k == 0 || r.ops[k-1].After.record == blankOne {
		rows = append(rows, "A2") // inside it
	}
	if len(after.objects) > len(r.before.objects) {
		rows = append(rows, "A4")
	}
	if after.temps > 0 || !slices.Equal(after.spares, r.before.spares) {
		rows = append(rows, "A5")
	}
	if after.reserve && (!r.before.reserve || after.reserveSize != r.before.reserveSize) {
		rows = append(rows, "A6")
	}
	if len(rows) == 0 || rows[0] == "A2" {
		rows = append(rows, "A3")
	}
	return rows
}

// after is from the commit point on.
func (r opRun) after(k int) string {
	switch after := r.ops[k].After; {
	case r.failed(k) || after.record == uncertainRecord:
		return "A8"
	case !r.synced(k, namespaceDir):
		return "A7"
	case after.record != blankOne:
		return "A9"
	}
	return "A10"
}

// synced reports whether a directory was synced after the last change of its names up to
// the k-th operation, or need not be: a commit by exchange is durable before that, and
// where it syncs the namespace all the same, that comes last.
func (r opRun) synced(k int, dir string) bool {
	for ; k >= 0; k-- {
		switch op := r.ops[k]; {
		case op.Op == fsguard.OpSyncDir && op.Path == dir && op.Err == nil:
			return true
		case op.Op == fsguard.OpExchange && isCommitPoint(op.Op, op.Path):
			return !slices.ContainsFunc(r.ops[k:], func(op seenOp) bool { return op.Op == fsguard.OpSyncDir && op.Path == namespaceDir })
		case isCommitPoint(op.Op, op.Path), op.Op == fsguard.OpMkdir && op.Path == namespaceDir && dir == ".":
			return false
		}
	}
	return false
}

// failed reports whether the namespace's sync has failed since the commit point.
func (r opRun) failed(k int) bool {
	for ; k >= 0 && !isCommitPoint(r.ops[k].Op, r.ops[k].Path); k-- {
		if r.ops[k].Op == fsguard.OpSyncDir && r.ops[k].Err != nil {
			return true
		}
	}
	return false
}

// recovering is under the record of somebody who did not finish.
func (r opRun) recovering(k int) []string {
	after := r.ops[k].After
	switch {
	case after.state == r.before.state:
		return []string{"R1"}
	case after.record == blankOne:
		return []string{"R5"}
	case r.failed(k):
		return []string{"R3"}
	case !r.synced(k, namespaceDir):
		return []string{"R2"}
	}
	return []string{"R4"}
}

// holding is what becomes of holders' files beside the rest.
func (r opRun) holding(k int) []string {
	after := r.ops[k].After
	made, locked, swept := false, false, false
	for i, op := range r.ops {
		made = made || op.Op == fsguard.OpCreate && isHolder(op.Path) && i <= k
		locked = locked || made && op.Op == fsguard.OpLock && isHolder(op.Path) && i <= k
		swept = swept || op.Op == fsguard.OpRemove && isHolder(op.Path) && i > k
	}
	settled := after.state != r.before.state
	idle := r.ops[len(r.ops)-1].After.state == r.before.state // there is no commit
	switch {
	case made && !locked:
		return []string{"H1"}
	case made && !settled:
		return []string{"H2"}
	case made:
		return []string{"H3"}
	case swept && (idle || settled && r.synced(k, namespaceDir)):
		return []string{"H4"}
	}
	return nil
}

func isHolder(at string) bool { return called(at) == "holder file" }

// restoring is Restore.
func (r opRun) restoring(k int) string {
	row := "B1"
	for _, op := range r.ops[:k+1] {
		switch {
		case op.Op == fsguard.OpMkdir && op.Path == restoringDir:
			row = "B2"
		case op.Op == fsguard.OpRename && op.From == restoringDir:
			row = "B3"
		case op.Op == fsguard.OpSyncDir && op.Path == "." && op.Root == crashRestored && row == "B3":
			row = "B4"
		}
	}
	return row
}

// creating is Create and ResumeCreate.
func (r opRun) creating(k int) []string {
	after := r.ops[k].After
	var row string
	switch {
	case !after.space:
		row = "C1"
	case after.state != "" && (after.state == r.before.state || r.synced(k, namespaceDir)):
		row = "C6"
	case after.state != "":
		row = "C5"
	case !r.synced(k, "."):
		row = "C2"
	case after.format && r.syncedFormat(k):
		row = "C4"
	default:
		row = "C3"
	}
	if r.before.space {
		return []string{row, "C7"}
	}
	return []string{row}
}

// syncedFormat reports whether the namespace was synced after format.json came.
func (r opRun) syncedFormat(k int) bool {
	formatted := false
	for i, op := range r.ops {
		if i > k {
			break
		}
		formatted = formatted || op.Op == fsguard.OpRename && op.Path == turnPath
		if formatted && op.Op == fsguard.OpSyncDir && op.Path == namespaceDir {
			return true
		}
	}
	return false
}
