//go:build unix && !cgo

package peer

// Goqite is left out of a program without cgo: its SQLite is written in C.
func Goqite() Peer {
	return Peer{Key: "goqite", Name: "goqite (SQLite)", Missing: withoutCgo}
}
