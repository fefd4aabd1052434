package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

func openCommand(k *kind[api.Instance]) *cobra.Command {
	cmd := &cobra.Command{
		Use: "open NAME|ID", Short: "Print a link that opens what an instance serves in a browser", Args: cobra.ExactArgs(1),
		Long: "Prints a link through the cluster's app gateway to a port of the instance that serves HTTP. It is for one browser, within\na minute. Programs use the address without a link, with an API key: Authorization: Bearer bslt_…\n\nIn a cluster without an app gateway, it prints an address on this computer, and forwards it to the port through the SSH\ngateway until it is interrupted.",
	}
	identity := cmd.Flags().StringP("identity", "i", "", "file with the private key, in a cluster without an app gateway; default: what ssh finds")
	port := cmd.Flags().Int64("port", 0, "TCP port of the instance; default: that of its app")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a := k.app
		in, c, err := a.connection(cmd.Context(), k, args[0])
		if err != nil {
			return err
		}
		if *port == 0 {
			if *port, err = onlyApp(in.Meta.Name, c.Apps); err != nil {
				return err
			}
		}
		if c.AppDomain == "" && c.Gateway != nil && *port > 0 && *port < 1<<16 {
			return a.forward(cmd.Context(), in, c, uint16(*port), *identity)
		}
		link, err := a.api.OpenApp(cmd.Context(), in.Meta.ID, *port)
		if err != nil {
			return err
		}
		return a.print(link, func() table { return table{{"LINK"}, {link.URL}} })
	}
	return cmd
}

// forward prints the address of an instance's port on this computer, and forwards it there
// through the SSH gateway until ssh ends.
func (a *App) forward(ctx context.Context, in api.Instance, c api.InstanceConnection, port uint16, identity string) error {
	gateway := a.gateway(c)
	gateway.user = c.Target // nobody signs in to the instance
	words, err := a.sshArguments(gateway, identity)
	if err != nil {
		return err
	}
	local, err := localPort(ctx, api.ForwardedPort(port))
	if err != nil {
		return err
	}
	address := api.ForwardedApp(api.InstanceID(in.Meta.ID), port, local)
	if err := a.print(api.AppLink{URL: address}, func() table { return table{{"ADDRESS"}, {address}} }); err != nil {
		return err
	}
	fmt.Fprintln(a.Err, "open while this command runs; press Ctrl-C to end it")
	// The gateway connects to the instance under its ID itself; "localhost" would need a sign-in.
	words = append([]string{"-N", "-o", "ExitOnForwardFailure=yes", "-L", fmt.Sprintf("127.0.0.1:%d:%s:%d", local, in.Meta.ID, port)}, words...)
	return a.ssh(ctx, words)
}

// localPort returns the port if nothing listens on it on this computer, and otherwise a free one.
func localPort(ctx context.Context, port uint16) (uint16, error) {
	for _, p := range []uint16{port, 0} {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(p))))
		if err == nil {
			free := l.Addr().(*net.TCPAddr).AddrPort().Port()
			return free, l.Close()
		}
	}
	return 0, errors.New("no port of this computer is free")
}

// ssh runs ssh in this terminal. Its exit code is the command's.
func (a *App) ssh(ctx context.Context, words []string) error {
	run := exec.CommandContext(ctx, "ssh", words...) //nolint:gosec // the words are ours and the caller's
	run.Stdin, run.Stdout, run.Stderr = a.In, a.Out, a.Err
	err := run.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exitCode(int64(max(1, exit.ExitCode())))
	}
	return err
}

// onlyApp returns the port of the app that an instance serves, if it is exactly one.
func onlyApp(instance string, apps []api.InstanceApp) (int64, error) {
	switch len(apps) {
	case 0:
		return 0, usagef("instance %s was not created from an app: give --port", instance)
	case 1:
		return apps[0].Port, nil
	}
	var all []string
	for _, app := range apps {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d %s", app.Port, app.Name)))
	}
	return 0, usagef("instance %s serves %s: give --port", instance, strings.Join(all, ", "))
}
