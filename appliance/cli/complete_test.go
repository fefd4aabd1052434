package cli

import (
	"regexp"
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestFlagsOfObjectsAreCompleted verifies that each flag that takes the name or ID of an
// object, according to its help, completes names.
func TestFlagsOfObjectsAreCompleted(t *testing.T) {
	object := regexp.MustCompile(`(^|[a-z], )(name or ID|ID or name)`)
	anyKind := []string{"actor", "object"} // of the audit trail
	var completed []string
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !object.MatchString(f.Usage) || slices.Contains(anyKind, f.Name) {
				return
			}
			if _, ok := cmd.GetFlagCompletionFunc(f.Name); !ok {
				t.Errorf("%s --%s (%s) completes nothing, want its name in the kind's word or in otherFlags", cmd.CommandPath(), f.Name, f.Usage)
			}
			completed = append(completed, f.Name)
		})
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(new(App).root())
	for _, name := range []string{"flavor", "node", "reseller", "target", "volume"} {
		if !slices.Contains(completed, name) {
			t.Errorf("no command has the flag --%s with the name or ID of an object, want one", name)
		}
	}
}

// TestOtherFlags verifies that the exceptions among the flags are needed and that their
// kinds have commands.
func TestOtherFlags(t *testing.T) {
	var words, kinds []string
	for _, k := range new(App).kinds() {
		words, kinds = append(words, k.word()), append(kinds, string(k.name()))
	}
	for flag, kind := range otherFlags {
		if isWord := slices.Contains(words, flag); isWord != (kind == "") {
			t.Errorf("--%s is the word of a kind: got %v, want %v", flag, isWord, kind == "")
		}
		if kind != "" && !slices.Contains(kinds, string(kind)) {
			t.Errorf("--%s names kind %s, want one of kinds()", flag, kind)
		}
	}
}
