package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

// maxStdin is how much standard input exec sends; the server accepts 1 MiB of JSON.
const maxStdin = 512 << 10

func execCommand(k *kind[api.Instance]) *cobra.Command {
	cmd := &cobra.Command{
		Use: "exec NAME|ID -- PROGRAM [ARGUMENT…]", Short: "Run a program in an instance through the guest agent",
		Long: "The program runs without a shell. Exits with its exit code.", Args: cobra.MinimumNArgs(2),
	}
	stdin := cmd.Flags().BoolP("stdin", "i", false, "pass standard input to the program")
	timeout := cmd.Flags().Duration("timeout", 30*time.Second, "end the program after this time")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		i, err := k.get(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		req := api.ExecRequest{Argv: args[1:], TimeoutSeconds: max(1, int64(timeout.Seconds()))}
		if *stdin {
			if req.Stdin, err = io.ReadAll(io.LimitReader(k.app.In, maxStdin+1)); err != nil {
				return err
			}
			if len(req.Stdin) > maxStdin {
				return usagef("standard input is larger than %s", formatSize(maxStdin))
			}
		}
		result, err := k.app.api.Exec(cmd.Context(), i.Meta.ID, req)
		if err != nil {
			return err
		}
		if k.app.flags.output != "table" {
			if err := k.app.print(result, nil); err != nil {
				return err
			}
		} else {
			_, _ = k.app.Out.Write(result.Stdout)
			_, _ = k.app.Err.Write(result.Stderr)
			if result.Truncated {
				fmt.Fprintln(k.app.Err, "(output truncated)")
			}
		}
		if result.ExitCode != 0 {
			return exitCode(result.ExitCode)
		}
		return nil
	}
	return cmd
}

func logCommand(k *kind[api.Instance]) *cobra.Command {
	cmd := &cobra.Command{Use: "log NAME|ID", Short: "Show the most recent serial console output", Args: cobra.ExactArgs(1)}
	tail := int64(64 << 10)
	cmd.Flags().Var(sizeFlag{&tail}, "tail", "how much to show, up to 1MiB")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		i, err := k.get(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		log, err := k.app.api.ConsoleLog(cmd.Context(), i.Meta.ID, tail)
		if err != nil {
			return err
		}
		if _, isTerminal := terminal(k.app.Out); isTerminal {
			log = []byte(plain(log))
		}
		_, err = k.app.Out.Write(log)
		return err
	}
	return cmd
}

// plain removes control characters from a guest's output, so that it cannot control the
// terminal.
func plain(log []byte) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0) {
			return -1
		}
		return r
	}, string(bytes.ToValidUTF8(log, []byte("?"))))
}

// keyLines returns the keys in a file like authorized_keys.
func keyLines(file string) ([]string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []string
	for s := bufio.NewScanner(bytes.NewReader(raw)); s.Scan(); {
		if line := strings.TrimSpace(s.Text()); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out, nil
}
