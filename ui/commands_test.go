package ui_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/cli"
)

// checkCommands verifies that the commands that a story has read next to forms are valid, as a
// shell parses them.
func checkCommands(t *testing.T, story string) {
	t.Helper()
	for line := range strings.Lines(story) {
		_, encoded, ok := strings.Cut(line, "SAME ")
		if !ok {
			continue
		}
		var text string
		if err := json.Unmarshal([]byte(strings.TrimSpace(encoded)), &text); err != nil {
			t.Fatal(err)
		}
		if err := checkCommand(t, text); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

func checkCommand(t *testing.T, text string) error {
	t.Helper()
	const words = `basalt() { printf '%s\0' "$@"; printf '\036'; }` + "\n"
	out, err := exec.CommandContext(t.Context(), "sh", "-c", words+text).CombinedOutput()
	if err != nil {
		return fmt.Errorf("run in a shell: %w: %s", err, out)
	}
	var errs []error
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x1e"), "\x1e") {
		errs = append(errs, cli.Check(strings.Split(strings.TrimSuffix(line, "\x00"), "\x00")))
	}
	return errors.Join(errs...)
}

// TestCheckCommand verifies that checkCommand rejects wrong commands.
func TestCheckCommand(t *testing.T) {
	for text, good := range map[string]bool{
		"basalt instance create demo \\\n  --project 'my web' --gpu-tier premium": true,
		"basalt apply -f - <<'BASALT'\n{\"kind\": \"x\"}\nBASALT":                 true,
		"basalt instance update demo --vram 1GiB":                                 false,
		"basalt project create a\nbasalt flavor set small --cpus 4":               false,
		"basalt flavor set small --cpus 4":                                        false,
		"basalt flavor set":                                                       false,
		"basalt flavor set small --memory 4GiB":                                   true,
		"basalt instance create 'demo":                                            false,
		"basalt flavor set small --memory plenty":                                 false,
	} {
		if err := checkCommand(t, text); (err == nil) != good {
			t.Errorf("checkCommand(%q) = %v, want valid %v", text, err, good)
		}
	}
}
