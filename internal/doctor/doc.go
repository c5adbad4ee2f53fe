//go:build unix

// Package doctor tries out, in one directory, everything that a store would stand on
// there, and says what came of each try.
//
// The tries are made through package fsguard, by the calls that the store itself makes,
// in a scratch directory of their own that is removed afterwards. No file of a store is
// touched. [Examine] returns a [Report]; what it means for v2 is in each [Check] and in
// [Report.Verdict]. A try that is refused is a finding and not an error.
//
// Two of the tries may meet a filter that kills at the call, and are left out by
// [Machine].Skip: the rename that replaces nothing, which Android's filter of system
// calls does not admit before Android 9; and the hard link, which passes that filter
// (SELinux answers it) but not every other.
//
// What cannot be tried by a program is whether a completed sync survives the loss of
// power. Package steps has the script of the test that finds out.
package doctor
