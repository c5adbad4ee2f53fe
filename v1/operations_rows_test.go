//go:build unix

package holdfast

import "example.com/holdfast/internal/fsguard"

// The rows of docs/crash-points.md, by what a crash right after an operation leaves: from
// what the disk then shows, and from which of its changes were synced.

// rows gives the keys for the k-th operation of a run.
func (r opRun) rows(k int) []string {
	if r.name == "open or create" {
		return []string{"M4"}
	}
	if key := r.producing(k); key != "" && !anyOf(r.ops, takes) {
		return []string{key}
	} else if key != "" {
		return append(r.consuming(k), key)
	}
	return r.consuming(k)
}

// producing is an enqueue, also one that comes during another call.
func (r opRun) producing(k int) string {
	n := namesOf(crashID)
	enqueues := func(op seenOp) bool { return op.Op == fsguard.OpRename && isTemp(op.From) && op.Path == n.pending }
	switch op := r.ops[k]; {
	case enqueues(op):
		return "E2"
	case isDirSync(op) && k > 0 && enqueues(r.ops[k-1]):
		return "E4"
	case isTemp(op.Path) && (anyOf(r.ops, enqueues) || !anyOf(r.ops, takes)):
		return "E1"
	}
	return ""
}

func isDirSync(op seenOp) bool { return op.Op == fsguard.OpSyncDir && op.Path == "." }

// consuming is what a call that holds the lock leaves.
func (r opRun) consuming(k int) []string {
	n := namesOf(crashID)
	after := r.ops[k].After
	migrates := func(op seenOp) bool { return op.Op == fsguard.OpRename && isTemp(op.From) && op.Path == n.processing }
	acks := func(op seenOp) bool { return op.Path == n.delivered }
	sets := func(op seenOp) bool { return fails(op) || r.before.failed != "" }
	switch upTo := r.ops[:k+1]; {
	case anyOf(r.ops, migrates) && after.temps > 0:
		return []string{"M1"}
	case anyOf(upTo, migrates) && !syncedSince(upTo, migrates):
		return []string{"M2"}
	case anyOf(upTo, acks) && after.marker == "":
		return []string{"K4"}
	case anyOf(upTo, acks) && !syncedSince(upTo, acks):
		return []string{"K2"}
	case anyOf(upTo, acks):
		return []string{"K3"}
	case anyOf(r.ops, acks) && after.claimed == "":
		return []string{"K3"} // an older marker
	case anyOf(r.ops, acks):
		return []string{"K1"}
	case after.failed != "" && anyOf(r.ops, sets):
		return []string{r.failing(k)}
	case anyOf(r.ops, fails) && r.before.pending != "" && r.before.claimed == "":
		return append(r.claiming(k), "Q1")
	}
	return r.claiming(k)
}

// syncedSince reports whether a directory was synced after the last operation that is.
func syncedSince(ops []seenOp, is func(seenOp) bool) bool {
	for k := len(ops) - 1; k >= 0 && !is(ops[k]); k-- {
		if isDirSync(ops[k]) {
			return true
		}
	}
	return false
}

// failing is from the failed name on.
func (r opRun) failing(k int) string {
	after, upTo := r.ops[k].After, r.ops[:k+1]
	switch {
	case after.claimed != "" && after.claimed != after.failed:
		return "Q6"
	case after.claimed == "" && anyOf(upTo, func(op seenOp) bool { return fails(op) && op.Op == fsguard.OpMoveNew }):
		return "Q5"
	case after.claimed == "":
		return "Q4"
	case !syncedSince(upTo, fails):
		return "Q2"
	}
	return "Q3"
}

// claiming is on the way to a claim, and from a claim that stands.
func (r opRun) claiming(k int) []string {
	n := namesOf(crashID)
	after, upTo := r.ops[k].After, r.ops[:k+1]
	claims := func(op seenOp) bool {
		return op.From == n.pending && op.Path == n.processing
	}
	drops := func(op seenOp) bool {
		return called(op.Path) == "record's entry" && op.Op == fsguard.OpRemove || op.From != "" && called(op.From) == "record's entry" && op.Op == fsguard.OpMoveNew
	}
	byLink := r.route == HardLink
	var row, beside string
	if !byLink && (after.record || r.before.record) {
		beside = "N6"
	}
	switch {
	case after.claimed == "" && !byLink:
		row = "N1"
	case after.claimed == "" && after.temps > r.before.temps:
		row = "L2"
	case after.claimed == "":
		row = "L1"
	case after.retired == after.claimed:
		row = "L7"
	case after.retired != "" && after.pending != "" && after.pending != after.retired:
		row = "L10"
	case after.retired != "":
		row = "L8"
	case after.record && anyOf(upTo, drops):
		row = "L11"
	case after.record:
		row = "L6"
	case after.pending == after.claimed && !byLink:
		row = "N5"
	case after.pending == after.claimed && anyOf(upTo, claims) && !syncedSince(upTo, claims):
		row = "L3"
	case after.pending == after.claimed:
		row = "L5"
	case anyOf(upTo, claims) && !byLink && syncedSince(upTo, claims):
		row = "N4"
	case anyOf(upTo, claims) && !byLink && after.pending != "":
		row = "N3"
	case anyOf(upTo, claims) && !byLink:
		row = "N2"
	case anyOf(upTo, func(op seenOp) bool { return op.Op == fsguard.OpRemoveDir }):
		row = "L12"
	default:
		row = "L13"
	}
	if beside != "" {
		return []string{row, beside}
	}
	return []string{row}
}
