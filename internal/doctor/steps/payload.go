package steps

import (
	"fmt"
	"math/rand/v2"
)

// Sizes of payloads: most are small and share objects; one in largeEvery is larger than
// any that do, and has an object of its own.
const (
	smallBytes = 2 << 10
	largeBytes = 72 << 10
	largeEvery = 32
)

// payload is the JSON that a number stands for.
func payload(seed, body uint64) []byte {
	r := rand.New(rand.NewPCG(seed, body))
	size := r.IntN(smallBytes)
	if r.IntN(largeEvery) == 0 {
		size = largeBytes + r.IntN(smallBytes)
	}
	text := fmt.Appendf(nil, `{"body":%d,"text":"`, body)
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	for range size {
		text = append(text, letters[r.Uint64()%uint64(len(letters))])
	}
	return append(text, `"}`...)
}
