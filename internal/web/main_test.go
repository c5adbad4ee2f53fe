//go:build unix

package web

import (
	"testing"

	"example.com/holdfast/internal/crashtest/reexec"
)

func TestMain(m *testing.M) {
	reexec.Main(m, map[string]func([]string) error{"panic": servePanic})
}
