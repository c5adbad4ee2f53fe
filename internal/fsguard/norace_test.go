//go:build unix && !race

package fsguard

const raceEnabled = false
