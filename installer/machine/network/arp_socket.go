package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

const arpNetOrder = 0x0608 // htons(ETH_P_ARP)

// ask returns the MAC address of target on the card, or nil if nobody answers. It asks
// three times, as in RFC 5227, but with shorter waits.
func ask(ctx context.Context, card string, from, target netip.Addr) (net.HardwareAddr, error) {
	if !target.Is4() {
		return nil, errors.New("network: only IPv4 addresses are asked for by ARP")
	}
	dev, err := net.InterfaceByName(card)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, arpNetOrder)
	if err != nil {
		return nil, fmt.Errorf("network: ARP socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: arpNetOrder, Ifindex: dev.Index}); err != nil {
		return nil, err
	}
	wait := unix.NsecToTimeval(int64(100 * time.Millisecond))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return nil, err
	}
	to := &unix.SockaddrLinklayer{Protocol: arpNetOrder, Ifindex: dev.Index, Halen: 6, Addr: [8]byte{255, 255, 255, 255, 255, 255}}
	buf := make([]byte, 128)
	for range 3 {
		if err := unix.Sendto(fd, request(dev.HardwareAddr, from, target), 0, to); err != nil {
			return nil, err
		}
		for until := time.Now().Add(700 * time.Millisecond); time.Now().Before(until); {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			n, _, err := unix.Recvfrom(fd, buf, 0)
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if mac, ok := owner(buf[:n], dev.HardwareAddr, target); ok {
				return mac, nil
			}
		}
	}
	return nil, nil
}
