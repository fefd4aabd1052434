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

// suite is what both implementations promise.
func suite(t *testing.T, d Daemons, kill func(t *testing.T, name string)) {
	ctx := t.Context()
	dir := t.TempDir()
	mark := filepath.Join(dir, "starts")
	// Says that it started, with its argument, and waits; ends at once by SIGTERM.
	argv := func(word string) []string {
		return []string{"/bin/sh", "-c", `echo "$1 $$" >>"$2"; echo "words $1 $HOME" >&2; exec sleep 1000`, "sh", word, mark}
	}
	starts := func(n int) []string {
		t.Helper()
		var lines []string
		eventually(t, "one more start", func() bool {
			text, _ := os.ReadFile(mark)
			lines = strings.Split(strings.TrimSpace(string(text)), "\n")
			return strings.HasSuffix(string(text), "\n") && len(lines) >= n
		})
		if len(lines) != n {
			t.Fatalf("started %d times, want %d: %q", len(lines), n, lines)
		}
		return lines
	}
	running := func(want bool) {
		t.Helper()
		eventually(t, "another state", func() bool {
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
		t.Errorf("stop what does not run: %v", err)
	}
	run("first $HOME ${HOME} %n")
	running(true)
	first := starts(1)
	if !strings.HasPrefix(first[0], "first $HOME ${HOME} %n ") {
		t.Errorf("the argument came as %q", first[0])
	}
	run("first $HOME ${HOME} %n")
	run("first $HOME ${HOME} %n")
	starts(1)

	run("second") // another argv: started anew
	running(true)
	starts(2)

	kill(t, "one") // it dies: the next Run (or systemd) starts it
	eventually(t, "a start after the death", func() bool {
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
			t.Errorf("%q runs", name)
		}
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	patience.Until(t, 30*time.Second, what, ok)
}
