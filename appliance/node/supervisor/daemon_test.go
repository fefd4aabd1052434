package supervisor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// suite checks what both implementations promise.
func suite(t *testing.T, d Daemons, kill func(t *testing.T, name string)) {
	ctx := t.Context()
	dir := t.TempDir()
	mark := filepath.Join(dir, "starts")
	// The program writes its argument when it starts, and waits; SIGTERM ends it at
	// once.
	argv := func(word string) []string {
		return []string{"/bin/sh", "-c", `echo "words $1 $HOME" >&2; echo "$1 $$" >>"$2"; exec sleep 1000`, "sh", word, mark}
	}
	starts := func(n int) []string {
		t.Helper()
		var lines []string
		eventually(t, "enough starts of the program", func() bool {
			text, _ := os.ReadFile(mark)
			lines = strings.Split(strings.TrimSpace(string(text)), "\n")
			return strings.HasSuffix(string(text), "\n") && len(lines) >= n
		})
		if len(lines) != n {
			t.Fatalf("program started %d times, want %d: %q", len(lines), n, lines)
		}
		return lines
	}
	running := func(want bool) {
		t.Helper()
		eventually(t, "the expected running state", func() bool {
			got, err := d.Running(ctx, "one")
			if err != nil {
				t.Fatal(err)
			}
			return got == want
		})
	}
	run := func(words string) {
		t.Helper()
		if err := d.Run(ctx, "one", argv(words)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = d.Stop(context.Background(), "one") })

	running(false)
	if err := d.Stop(ctx, "one"); err != nil {
		t.Errorf("Stop of a program that does not run: %v, want nil", err)
	}
	run("first $HOME ${HOME} %n")
	running(true)
	first := starts(1)
	if !strings.HasPrefix(first[0], "first $HOME ${HOME} %n ") {
		t.Errorf("argument in the program = %q, want it unexpanded", first[0])
	}
	run("first $HOME ${HOME} %n")
	run("first $HOME ${HOME} %n")
	starts(1)

	run("second") // different arguments: restarted
	running(true)
	starts(2)

	kill(t, "one") // the next Run (or systemd) starts it again
	eventually(t, "a start after the program was killed", func() bool {
		run("second")
		text, _ := os.ReadFile(mark)
		return strings.Count(string(text), "\n") == 3
	})
	running(true)
	starts(3)

	if err := d.Stop(ctx, "one"); err != nil {
		t.Fatal(err)
	}
	running(false)
	run("third")
	running(true)
	starts(4)
	if err := d.Stop(ctx, "one"); err != nil {
		t.Fatal(err)
	}

	for name, argv := range map[string][]string{
		"":                      {"/bin/true"},
		"../x":                  {"/bin/true"},
		strings.Repeat("a", 64): {"/bin/true"},
		"relative":              {"true"},
		"nothing":               nil,
		"absent":                {"/nowhere/daemon"},
		"lines":                 {"/bin/true", "a\nb"},
		"large":                 {"/bin/true", strings.Repeat("x", maxArgBytes)},
	} {
		if err := d.Run(ctx, name, argv); err == nil {
			t.Errorf("Run(%q) of an invalid name or argv returned nil, want an error", name)
		}
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	patience.Until(t, 30*time.Second, what, ok)
}
