//go:build unix && race

package holdfast

// raceDetector makes explorations smaller: it costs a factor of ten, and the same
// points are explored in full without it.
const raceDetector = true
