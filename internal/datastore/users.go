package datastore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/state"
)

// users manages the users and roles of etcd. A user is somebody with a certificate: its name is that of the user, and
// there is no password.
type users struct {
	*clientv3.Client
	fleet string
}

// keeperUser may do everything.
const keeperUser = "root"

// begin makes the keeper's user and the roles that several share, and has etcd ask who somebody is.
func (u users) begin(ctx context.Context) error {
	if err := u.add(ctx, keeperUser); err != nil {
		return err
	}
	if _, err := u.RoleAdd(ctx, keeperUser); unless(err, rpctypes.ErrRoleAlreadyExist) != nil {
		return err
	}
	if _, err := u.UserGrantRole(ctx, keeperUser, keeperUser); err != nil {
		return err
	}
	for _, r := range []state.Role{state.NodesRole(u.fleet), state.OperatorRole(u.fleet), state.ViewerRole(u.fleet)} {
		if err := u.role(ctx, r); err != nil {
			return err
		}
	}
	_, err := u.AuthEnable(ctx)
	return err
}

// list are the users beside the keeper.
func (u users) list(ctx context.Context) ([]string, error) {
	got, err := u.UserList(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(got.Users, func(name string) bool { return name == keeperUser }), nil
}

// grant lets somebody in.
func (u users) grant(ctx context.Context, name string, kind authority.Kind) error {
	roles := state.RolesOf(kind, u.fleet, name)
	for _, r := range roles {
		if err := u.role(ctx, r); err != nil {
			return err
		}
	}
	if err := u.add(ctx, name); err != nil {
		return err
	}
	for _, r := range roles {
		if _, err := u.UserGrantRole(ctx, name, r.Name); err != nil {
			return fmt.Errorf("role %s for %s: %w", r.Name, name, err)
		}
	}
	return nil
}

// drop locks somebody out: from now on etcd answers none of its requests.
func (u users) drop(ctx context.Context, name string) error {
	if _, err := u.UserDelete(ctx, name); unless(err, rpctypes.ErrUserNotFound) != nil {
		return err
	}
	_, err := u.RoleDelete(ctx, state.OwnRole(name))
	return unless(err, rpctypes.ErrRoleNotFound)
}

func (u users) add(ctx context.Context, name string) error {
	_, err := u.UserAddWithOptions(ctx, name, "", &clientv3.UserAddOptions{NoPassword: true})
	return unless(err, rpctypes.ErrUserAlreadyExist)
}

// role makes a role, and grants what it lacks. What it has beside is taken back: pullet may have granted more before.
func (u users) role(ctx context.Context, r state.Role) error {
	if _, err := u.RoleAdd(ctx, r.Name); unless(err, rpctypes.ErrRoleAlreadyExist) != nil {
		return err
	}
	got, err := u.RoleGet(ctx, r.Name)
	if err != nil {
		return err
	}
	have, want := map[state.Range]clientv3.PermissionType{}, permissions(r)
	for _, p := range got.Perm {
		keys := state.Range{From: string(p.Key), End: string(p.RangeEnd)}
		if _, wanted := want[keys]; wanted {
			have[keys] = clientv3.PermissionType(p.PermType)
		} else if _, err := u.RoleRevokePermission(ctx, r.Name, keys.From, keys.End); err != nil {
			return err
		}
	}
	for keys, may := range want {
		if had, ok := have[keys]; ok && had == may {
			continue
		}
		if _, err := u.RoleGrantPermission(ctx, r.Name, keys.From, keys.End, may); err != nil {
			return fmt.Errorf("role %s: %w", r.Name, err)
		}
	}
	return nil
}

// permissions are those of a role, as etcd has them.
func permissions(r state.Role) map[state.Range]clientv3.PermissionType {
	out := map[state.Range]clientv3.PermissionType{}
	for _, p := range r.Permissions() {
		out[p.Range] = clientv3.PermissionType(clientv3.PermRead)
		if p.Write {
			out[p.Range] = clientv3.PermissionType(clientv3.PermReadWrite)
		}
	}
	return out
}

// unless is an error, but for one that says that there is nothing to do.
func unless(err, done error) error {
	if errors.Is(err, done) {
		return nil
	}
	return err
}
