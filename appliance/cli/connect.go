package cli

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

// way is one way to sign in to an instance by SSH.
type way struct {
	what, user, host string
	port             int64
	hostKey          string // of the gateway; empty: the instance's own key, which is unknown here
}

// command returns the ssh command line.
func (w way) command() string {
	port := ""
	if w.port != 22 {
		port = fmt.Sprintf("-p %d ", w.port)
	}
	return "ssh " + port + w.user + "@" + w.host
}

// ways returns how to reach an instance, the preferred one first: a floating IP, then the SSH
// gateway.
func (a *App) ways(c api.InstanceConnection) (all []way) {
	for _, ip := range c.Addresses {
		all = append(all, way{what: "floating IP", user: cmp.Or(c.User, "USER"), host: ip, port: 22})
	}
	if c.Gateway != nil {
		all = append(all, a.gateway(c))
	}
	return all
}

// gateway returns how to reach an instance through the SSH gateway, which must exist.
func (a *App) gateway(c api.InstanceConnection) way {
	g, user := c.Gateway, c.Target
	if c.User == "" {
		user = "USER%" + user
	}
	return way{what: "SSH gateway", user: user, host: cmp.Or(g.Host, a.serverHost()), port: g.Port, hostKey: g.HostKey}
}

// serverHost returns the host of the API; every node runs a gateway.
func (a *App) serverHost() string {
	first, _, _ := strings.Cut(a.config.Server, ",")
	if u, err := url.Parse(first); err == nil && u.Hostname() != "" {
		return u.Hostname()
	}
	return "localhost" // the node's own socket
}

func (a *App) connection(ctx context.Context, k *kind[api.Instance], ref string) (api.Instance, api.InstanceConnection, error) {
	in, err := k.get(ctx, ref)
	if err != nil {
		return in, api.InstanceConnection{}, err
	}
	c, err := a.api.InstanceConnection(ctx, in.Meta.ID)
	return in, c, err
}

func connectCommand(k *kind[api.Instance]) *cobra.Command {
	cmd := &cobra.Command{Use: "connect NAME|ID", Short: "Show how to sign in to an instance by SSH", Args: cobra.ExactArgs(1)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a := k.app
		in, c, err := a.connection(cmd.Context(), k, args[0])
		if err != nil {
			return err
		}
		ways := a.ways(c)
		if len(ways) == 0 && len(c.Apps) == 0 && a.flags.output == "table" {
			return api.Errorf(api.CodeState, "instance %s has no external address, and the cluster has no SSH gateway", in.Meta.Name).
				WithHint("attach a floating IP: basalt floating-ip create NAME --instance %s; or use its console: basalt instance console %s", in.Meta.Name, in.Meta.Name)
		}
		if c.WithoutKey {
			fmt.Fprintln(a.Err, "warning: the instance was created without SSH keys and user data: sign-in is possible only through the SSH gateway")
		}
		return a.print(c, func() table {
			t := table{{"WAY", "COMMAND"}}
			for _, w := range ways {
				t = append(t, []string{w.what, w.command()})
			}
			for _, app := range c.Apps {
				t = append(t, []string{cmp.Or(app.Name, "app"), fmt.Sprintf("basalt instance open %s --port %d", in.Meta.Name, app.Port)})
			}
			if c.Gateway != nil {
				t = append(t, []string{"host key", c.Gateway.Fingerprint + " (SSH gateway)"})
			}
			return t
		})
	}
	return cmd
}

func sshCommand(k *kind[api.Instance]) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ssh NAME|ID [-- ARGUMENT…]", Short: "Sign in to an instance by SSH", Args: cobra.MinimumNArgs(1),
		Long: "Runs ssh through the cluster's SSH gateway, whose host key is taken from the API, or to a floating IP where there is no\ngateway. What follows -- is given to ssh after the host: a command to run. Exits with ssh's exit code.",
	}
	user := cmd.Flags().String("user", "", "user in the instance; default: the image's")
	identity := cmd.Flags().StringP("identity", "i", "", "file with the private key; default: what ssh finds")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a := k.app
		in, c, err := a.connection(cmd.Context(), k, args[0])
		if err != nil {
			return err
		}
		if *user != "" {
			c.User = *user
			if c.Target != "" {
				c.Target = *user + "%" + c.Target
			}
		}
		ways := a.ways(c)
		switch {
		case len(ways) == 0:
			return api.Errorf(api.CodeState, "instance %s has no external address, and the cluster has no SSH gateway", in.Meta.Name).
				WithHint("attach a floating IP: basalt floating-ip create NAME --instance %s; or use its console: basalt instance console %s", in.Meta.Name, in.Meta.Name)
		case c.User == "":
			return usagef("the image of instance %s has no default user: --user is required", in.Meta.Name)
		}
		w := ways[len(ways)-1] // the gateway if there is one, as its host key is known
		words, err := a.sshArguments(w, *identity)
		if err != nil {
			return err
		}
		return a.ssh(cmd.Context(), append(words, args[1:]...))
	}
	return cmd
}

// sshArguments returns the arguments of ssh that precede a command. It writes the gateway's
// host key to a file of its own next to the configuration.
func (a *App) sshArguments(w way, identity string) ([]string, error) {
	words := []string{"-p", strconv.FormatInt(w.port, 10), "-l", w.user}
	if identity != "" {
		words = append(words, "-i", identity, "-o", "IdentitiesOnly=yes")
	}
	if w.hostKey != "" && a.ConfigDir != "" {
		name := w.host
		if w.port != 22 {
			name = "[" + w.host + "]:" + strconv.FormatInt(w.port, 10)
		}
		if err := os.MkdirAll(a.ConfigDir, 0o700); err != nil {
			return nil, fmt.Errorf("write the host key of the SSH gateway: %w", err)
		}
		known := filepath.Join(a.ConfigDir, "ssh-gateway-"+strings.NewReplacer(":", "-", "/", "-").Replace(net.JoinHostPort(w.host, strconv.FormatInt(w.port, 10))))
		if err := os.WriteFile(known, []byte(name+" "+w.hostKey+"\n"), 0o600); err != nil {
			return nil, fmt.Errorf("write the host key of the SSH gateway: %w", err)
		}
		words = append(words, "-o", `UserKnownHostsFile="`+known+`"`, "-o", "StrictHostKeyChecking=yes")
	}
	return append(words, "--", w.host), nil
}
