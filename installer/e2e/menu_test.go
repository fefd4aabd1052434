package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMenu checks that all files named in the medium's menu are on the medium,
// including those of entries that no other test uses.
func TestMenu(t *testing.T) {
	t.Parallel()
	iso := medium(t)
	menu := filepath.Join(t.TempDir(), "grub.cfg")
	run(t, "xorriso", "-osirrox", "on", "-indev", iso, "-extract", "/boot/grub/grub.cfg", menu)
	text, err := os.ReadFile(menu)
	if err != nil {
		t.Fatal(err)
	}
	list, err := exec.Command("xorriso", "-indev", iso, "-find", "/live", "-type", "f").Output()
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?m)^\s*(linux|initrd) (\S+)`).FindAllStringSubmatch(string(text), -1)
	entries := 0
	for _, m := range named {
		if m[1] == "linux" {
			entries++
		}
		if !strings.Contains(string(list), "'"+m[2]+"'") {
			t.Errorf("the menu's %s %s is not on the medium", m[1], m[2])
		}
	}
	if entries != 2 || len(named) != 2*entries {
		t.Errorf("the menu starts %d kernels and names %d files, want two and four:\n%s", entries, len(named), text)
	}
}
