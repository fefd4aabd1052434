package cli

import (
	"cmp"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) sshKeys() *kind[api.SSHKey] {
	k := &kind[api.SSHKey]{
		app: a, noun: "ssh-key", about: "Your own SSH keys", own: true,
		columns: []string{"TYPE", "FINGERPRINT", "EXPIRES", "LAST USED"},
		row: func(k api.SSHKey) []string {
			return []string{k.Spec.Type, k.Spec.Fingerprint, timeOr(k.Spec.ExpiresAt, "never"), timeOr(k.Status.LastUsedAt, "never")}
		},
		flags: sshKeyFlags(a),
	}
	create, remove := k.createCommand(), k.deleteCommand()
	create.Long = "Saves one of your public keys: new instances can use it by its name, and the SSH gateway accepts it."
	k.more = []*cobra.Command{create, remove}
	return k
}

func timeOr(t *time.Time, none string) string {
	if t == nil {
		return none
	}
	return formatTime(*t)
}

func sshKeyFlags(a *App) func(*pflag.FlagSet) func(*api.SSHKey) error {
	return func(f *pflag.FlagSet) func(*api.SSHKey) error {
		file := f.String("file", "", "file with the public key; default: your Ed25519, ECDSA or RSA key in ~/.ssh, the first that exists")
		expires := f.Duration("expires-in", 0, "how long it is valid at the SSH gateway; default: does not expire")
		return func(k *api.SSHKey) error {
			lines, err := keyLines(cmp.Or(*file, defaultKey()))
			if err != nil {
				return err
			}
			if len(lines) != 1 {
				return usagef("%s has %d keys, want one", cmp.Or(*file, defaultKey()), len(lines))
			}
			k.Spec.PublicKey = lines[0]
			if *expires != 0 {
				at := a.Now().Add(*expires).UTC().Truncate(time.Second)
				k.Spec.ExpiresAt = &at
			}
			return nil
		}
	}
}

// defaultKey returns the path of the public key that ssh tries first.
func defaultKey() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	for _, name := range []string{"id_ed25519.pub", "id_ecdsa.pub", "id_rsa.pub"} {
		if path := filepath.Join(home, ".ssh", name); exists(path) {
			return path
		}
	}
	return filepath.Join(home, ".ssh", "id_ed25519.pub")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// instanceKeys resolves the values of --ssh-key: a file with public keys, or the name of one of
// the caller's SSH keys if no such file exists.
func instanceKeys(words []string) ([]string, error) {
	var all []string
	for _, w := range words {
		if api.ValidateName(w) == nil && !exists(w) || api.LooksLikeID(w) {
			all = append(all, w)
			continue
		}
		lines, err := keyLines(w)
		if err != nil {
			return nil, err
		}
		all = append(all, lines...)
	}
	return all, nil
}
