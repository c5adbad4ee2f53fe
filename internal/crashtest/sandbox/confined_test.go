//go:build unix

package sandbox

import "testing"

// A test that starts a process leaves itself out of a confined run, and of no other.
func TestStartsProcess(t *testing.T) {
	for _, how := range []string{"", string(AsApp)} {
		t.Run("confined "+how, func(t *testing.T) {
			t.Setenv(Env, how)
			skipped := true
			t.Run("starts", func(t *testing.T) {
				defer func() { skipped = t.Skipped() }()
				StartsProcess(t)
			})
			if skipped != (how != "") {
				t.Errorf("it was left out: %v", skipped)
			}
		})
	}
}
