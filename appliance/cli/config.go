package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

// defaultServer is the socket of basaltd on this node.
const defaultServer = "unix:/run/basalt/api.sock"

// config is the content of config.yaml: the server to connect to and the credentials.
type config struct {
	Server       string `json:"server,omitempty"`
	Token        string `json:"token,omitempty"`
	CA           string `json:"ca,omitempty"` // PEM of the cluster's CA
	Organization string `json:"organization,omitempty"`
	Project      string `json:"project,omitempty"`
}

func (a *App) configFile() string { return filepath.Join(a.ConfigDir, "config.yaml") }

func (a *App) readConfig() (config, error) {
	var c config
	if a.ConfigDir == "" {
		return c, nil
	}
	raw, err := os.ReadFile(a.configFile())
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = yaml.UnmarshalStrict(raw, &c)
	}
	if err != nil {
		return c, fmt.Errorf("read %s: %w", a.configFile(), err)
	}
	return c, nil
}

// writeConfig replaces the file; only its owner can read it.
func (a *App) writeConfig(c config) error {
	raw, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(a.ConfigDir, 0o700); err != nil {
		return err
	}
	return atomicfile.WriteFile(a.configFile(), raw, 0o600)
}

func (a *App) contextCommand() *cobra.Command {
	return &cobra.Command{
		Use: "context", Short: "Show the server that the CLI connects to", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			shown := a.config
			if shown.Token != "" {
				shown.Token = maskToken(shown.Token)
			}
			return a.print(shown, func() table {
				return table{{"SERVER", "KEY", "ORGANIZATION", "PROJECT"}, {shown.Server, shown.Token, shown.Organization, shown.Project}}
			})
		},
	}
}

// maskToken returns the public part of a token.
func maskToken(t string) string {
	const public = len("bslt_key-000000000000")
	if len(t) <= public+16 {
		return "…"
	}
	return t[:public] + "_…"
}

func (a *App) whoamiCommand() *cobra.Command {
	return &cobra.Command{
		Use: "whoami", Short: "Show the identity in use", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			me, err := a.api.Whoami(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(me, func() table {
				a.learn(cmd.Context(), []api.Kind{api.KindOrganization, api.KindProject})
				return table{{"KEY", "NAME", "ROLE", "ORGANIZATION", "PROJECT"}, {me.Key, me.Name, string(me.Role), a.named(me.Organization), a.named(me.Project)}}
			})
		},
	}
}

func (a *App) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the server's version; --version shows the version of this program", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, err := a.api.Version(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(v, func() table { return table{{"VERSION", "API"}, {v.Version, v.API}} })
		},
	}
}
