//go:build unix && !race

package holdfast

const raceDetector = false
