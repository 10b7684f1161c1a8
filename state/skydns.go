package state

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// dnsPath is where the etcd plugin of CoreDNS looks unless it is told otherwise.
const dnsPath = "/skydns"

// dnsTTL is for how many seconds an answer may be kept: what is not ready any longer is soon forgotten.
const dnsTTL = 30

// dnsRecord is a record as the etcd plugin of CoreDNS reads it. Its key is the name from the last label to the first.
// With an address as host it is an A or AAAA record, with a port an SRV record too; below arpa, with a name as host, it
// is a PTR record.
type dnsRecord struct {
	Host string `json:"host"`
	Port int    `json:"port,omitempty"`
	TTL  int    `json:"ttl"`
}

// nameInDNS is what an instance is called there: NODE.NAME.service.ZONE, which NAME.service.ZONE finds as well. Only
// what is ready has one.
func (s *Service) nameInDNS(name, node, zone string) string {
	if zone == "" || s.Ready.IsZero() || s.Address == "" {
		return ""
	}
	return strings.ToLower(node + "." + name + ".service." + zone)
}

// inDNS is what stands for an instance: its name, and the reverse of its address. CoreDNS has one name for an address:
// of several instances with one address the first has it.
func (s *Service) inDNS() map[string]dnsRecord {
	if s == nil || s.DNS == "" {
		return nil
	}
	out := map[string]dnsRecord{dnsKey(s.DNS): {s.Address, s.Port, dnsTTL}}
	if ip, err := netip.ParseAddr(s.Address); err == nil { // a name has no reverse
		out[reverseKey(ip)] = dnsRecord{Host: s.DNS + ".", TTL: dnsTTL}
	}
	return out
}

// standInDNS puts what stands for an instance where nothing stands.
func (s *Services) standInDNS(ctx context.Context, key string, service *Service) error {
	var ops []clientv3.Op
	for at, record := range service.inDNS() {
		free := clientv3.Compare(clientv3.CreateRevision(at), "=", 0)
		ops = append(ops, clientv3.OpTxn([]clientv3.Cmp{free}, []clientv3.Op{Put(at, record)}, nil))
	}
	if len(ops) == 0 {
		return nil
	}
	_, err := s.store.Client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), ">", 0)).Then(ops...).Commit()
	return err
}

// leaveDNS takes out what stands for an instance, but not what stands for another one with its address.
func (s *Service) leaveDNS() []clientv3.Op {
	var ops []clientv3.Op
	for at, record := range s.inDNS() {
		// Encoding cannot fail: it is plain data.
		value, _ := json.Marshal(record)
		own := clientv3.Compare(clientv3.Value(at), "=", string(value))
		ops = append(ops, clientv3.OpTxn([]clientv3.Cmp{own}, []clientv3.Op{clientv3.OpDelete(at)}, nil))
	}
	return ops
}

// dnsKey is the key of a name.
func dnsKey(name string) string {
	labels := strings.Split(name, ".")
	slices.Reverse(labels)
	return dnsPath + "/" + strings.Join(labels, "/")
}

// reverseKey is the key of an address: that of the name under which reverse look-ups ask for it.
func reverseKey(ip netip.Addr) string {
	ip = ip.Unmap().WithZone("")
	var parts []string
	if ip.Is4() {
		for _, b := range ip.AsSlice() {
			parts = append(parts, strconv.Itoa(int(b)))
		}
		return dnsPath + "/arpa/in-addr/" + strings.Join(parts, "/")
	}
	const digits = "0123456789abcdef"
	for _, b := range ip.AsSlice() {
		parts = append(parts, digits[b>>4:b>>4+1], digits[b&15:b&15+1])
	}
	return dnsPath + "/arpa/ip6/" + strings.Join(parts, "/")
}
