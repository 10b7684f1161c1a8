package state

// part is what the parts of a Store are: each is the Store again, with the methods of one subject.
type part struct{ store *Store }

// The parts of a Store. They are safe for concurrent use.
type (
	// Presences tell who lives: a node joins the fleet with a lease, keeps it, and leaves.
	Presences part
	// Nodes are the lasting records of the fleet's hosts, until they are decommissioned.
	Nodes part
	// Statuses are what nodes say of themselves: what they run, and how their last run ended.
	Statuses part
	// Doubts guard against a record that went back in time, and against another etcd.
	Doubts part
	// Versions are the fleet's version, those before it, and how operators move between them.
	Versions part
	// Rollouts are the records of one: queues, places, gates, and how far its groups are.
	Rollouts part
	// Rosters are the nodes that count at a group or a barrier.
	Rosters part
	// Steps are the runs of serialized steps, and what operators settle about them.
	Steps part
	// Results are values that steps share with other nodes, kept by their digest.
	Results part
	// Extensions are executables of actions that operators published, kept by their digest.
	Extensions part
	// Services are the instances that nodes announce.
	Services part
	// Commands are what operators have nodes run.
	Commands part
	// Switches disable nodes, roles or the fleet, and pause rollouts.
	Switches part
	// Bells wake who waits.
	Bells part
	// Identities are who may connect to the fleet's own datastore, with which certificate.
	Identities part
	// Datastores is the fleet's own datastore itself: which hosts carry it.
	Datastores part
	// Events are what happened, on their way from the hosts to the reactor and out of the fleet.
	Events part
	// EventLog is what happened, for people: what the reactor read, and what waits for it.
	EventLog part
	// Sinks are how far the log of events is sent to receivers outside of the fleet.
	Sinks part
	// Reactions are the runs with which hosts answer events.
	Reactions part
	// Views are the fleet's record as people and templates see it.
	Views part
)

// divide gives a Store its parts.
func (s *Store) divide() *Store {
	all := &part{s}
	s.Presences, s.Nodes, s.Statuses = (*Presences)(all), (*Nodes)(all), (*Statuses)(all)
	s.Doubts, s.Versions, s.Rollouts = (*Doubts)(all), (*Versions)(all), (*Rollouts)(all)
	s.Rosters, s.Steps, s.Results = (*Rosters)(all), (*Steps)(all), (*Results)(all)
	s.Extensions = (*Extensions)(all)
	s.Services, s.Commands, s.Switches = (*Services)(all), (*Commands)(all), (*Switches)(all)
	s.Bells, s.Views, s.Identities = (*Bells)(all), (*Views)(all), (*Identities)(all)
	s.Datastores, s.Reactions = (*Datastores)(all), (*Reactions)(all)
	s.Events, s.EventLog = (*Events)(all), (*EventLog)(all)
	s.Sinks = (*Sinks)(all)
	return s
}
