// Package steps has a script of numbered steps on a store, the same for the same seed,
// and tells from a store how many of them it holds.
//
// It is the evidence of the tests that kill a process and that take away the power. Who
// performs the script says after each step that it was acknowledged, to somebody who
// outlives it. Afterwards the store must hold exactly the first m steps for one m, and m
// must not be less than what was acknowledged; see [Find]. What the script predicts is
// computed here by a few lines of its own and not by any engine.
//
// Each step is one call, and so one commit, and raises at least one counter of the queue.
// So no two numbers of steps leave the same store behind.
package steps
