package wireguard

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"

	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/ipc"
	"golang.zx2c4.com/wireguard/tun"
)

// programVariable has this program run as wireguard-go, with the interface's name and its
// MTU as arguments: the kernel of a machine for tests may have no WireGuard.
const programVariable = "BASALT_TEST_WIREGUARD"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) == "" {
		os.Exit(m.Run())
	}
	if err := wireguardGo(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// wireguardGo serves an interface until it is removed, and its socket for wgctrl.
func wireguardGo(name, mtu string) error {
	size, err := strconv.Atoi(mtu)
	if err != nil {
		return err
	}
	t, err := tun.CreateTUN(name, size)
	if err != nil {
		return fmt.Errorf("create TUN device: %w", err)
	}
	d := device.NewDevice(t, conn.NewDefaultBind(), device.NewLogger(device.LogLevelError, name+": "))
	file, err := ipc.UAPIOpen(name)
	if err != nil {
		return fmt.Errorf("open socket: %w", err)
	}
	l, err := ipc.UAPIListen(name, file)
	if err != nil {
		return fmt.Errorf("listen on socket: %w", err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go d.IpcHandle(c)
		}
	}()
	fmt.Println("ready")
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	select {
	case <-ended:
	case <-d.Wait():
	}
	d.Close()
	return l.Close()
}
