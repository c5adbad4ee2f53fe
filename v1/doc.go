// Package holdfast is the v1 store: a queue of JSON files in a directory, on disk the
// same as the durable queue of the npm package @openclaw/fs-safe, so that programs in Go
// and in JavaScript can work on one directory at the same time. Import it as
// example.com/holdfast/v1. For a queue that no JavaScript touches take the v2 store: it
// has leases, retries, one snapshot of its status, and needs no hard link.
//
// After a crash an entry is pending, claimed, or in the failed directory, as it was last
// durable; nothing acknowledged as written is lost, and nothing acknowledged as done
// comes back. Delivery is at least once.
//
// # The life of an entry
//
//	Enqueue ──▶ ID.json ──Load──▶ ID.processing ──Ack──▶ ID.delivered, and gone
//	                                    │
//	                                    └──Fail──▶ FAILED/ID.json
//
// Enqueue replaces a pending entry of the same ID and never a claimed one. Load gives a claim
// that stands to whoever asks: a claim is no lease, and two consumers of one ID share
// it. A transfer lock, a file made exclusively, keeps the transitions of one ID apart; it is held
// for the time of the transition alone. What a crash leaves of a transition is told
// from the names that stand, and finished by the next one of that ID. A crash may
// also leave the lock: it is then reported as stale, ErrLockStale, and never taken over; see
// Store.Locks and Store.RemoveLock. Nothing wakes a consumer: it looks again.
//
// A directory that is handed over to a v2 store refuses every change, ErrImported, to stores that
// were open before, too. Programs of the npm package do not know of it.
//
// # Routes
//
// A claim must never replace or take what it did not see. The package makes a second hard
// link and compares inodes. Where links are refused, as to every app on Android, ClaimBy:
// RenameNoReplace does the same by one rename that replaces nothing. It is never chosen
// silently, and never weakened: where it does not work the answer is
// ErrHelperUnavailable.
//
// # Files
//
//	DIR/
//	  ID.json                        pending
//	  ID.processing                  claimed
//	  ID.delivered                   acknowledged, about to vanish
//	  PREFIX.PID.UUID.tmp            being written, or left by a crash
//	  .fs-safe-transfer-HEX.lock     the transfer lock of one ID
//	  .fs-safe-retirements/ID.json/  a retirement under way
//	  .holdfast-import               handed over to a v2 store
//	FAILED/
//	  ID.json                        set aside
//
// docs/format-v1.md in the repository has the whole format, and every difference from
// the npm package.
//
// # Limits
//
// The order of entries is that of their IDs. There is no snapshot of the whole directory: see
// Status. The protocol holds among programs that follow it; one that renames or
// removes entries without the transfer lock can lose them.
package holdfast
