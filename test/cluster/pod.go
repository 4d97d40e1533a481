package cluster

import (
	"encoding/json"
	"strconv"
)

// A pod is what the node reads of a pod.
type pod struct {
	Metadata struct {
		Name, Namespace, UID string
		DeletionTimestamp    string
		Labels, Annotations  map[string]string
	}
	Spec struct {
		NodeName                      string
		InitContainers, Containers    []container
		Volumes                       []volume
		RestartPolicy                 string
		EnableServiceLinks            *bool
		ServiceAccountName            string
		TerminationGracePeriodSeconds int
	}
	Status struct{ Phase string }
}

type container struct {
	Name, Image   string
	Command, Args []string
	Env           []variable
	EnvFrom       []variables
	VolumeMounts  []mount
	Ports         []struct {
		Name          string
		ContainerPort int
	}
	StartupProbe, ReadinessProbe, LivenessProbe *probe
	Lifecycle                                   struct{ PreStop *handler }
	TerminationMessagePolicy                    string
}

// A variable of the environment.
type variable struct {
	Name, Value string
	ValueFrom   struct {
		FieldRef                      *struct{ FieldPath string }
		ConfigMapKeyRef, SecretKeyRef *keyRef
		ResourceFieldRef              *struct{ Resource string }
	}
}

// variables are all keys of an object.
type variables struct {
	Prefix                  string
	ConfigMapRef, SecretRef *objectRef
}

type objectRef struct {
	Name     string
	Optional bool
}

type keyRef struct {
	objectRef
	Key string
}

type mount struct{ Name, MountPath, SubPath string }

// A volume has one of these.
type volume struct {
	Name      string
	ConfigMap *source
	Secret    *source
	Projected *struct {
		Sources []struct{ ConfigMap, Secret *source }
	}
	EmptyDir *struct{}
}

// A source of files is a ConfigMap, which has a Name, or a Secret.
type source struct {
	Name, SecretName string
	Optional         bool
	Items            []struct{ Key, Path string }
}

type handler struct {
	Exec *struct{ Command []string }
	GRPC *struct {
		Port    port
		Service string
	}
	HTTPGet *struct {
		Path, Scheme string
		Port         port
	}
	TCPSocket *struct{ Port port }
	Sleep     *struct{ Seconds int }
}

type probe struct {
	handler
	InitialDelaySeconds, TimeoutSeconds, PeriodSeconds int
	SuccessThreshold, FailureThreshold                 int
}

// A port is a number or the name of one.
type port string

// UnmarshalJSON reads either.
func (p *port) UnmarshalJSON(text []byte) error {
	var name string
	if json.Unmarshal(text, &name) == nil {
		*p = port(name)
		return nil
	}
	var number int
	err := json.Unmarshal(text, &number)
	*p = port(strconv.Itoa(number))
	return err
}

// number finds p among the ports of c.
func (p port) number(c container) string {
	for _, own := range c.Ports {
		if own.Name == string(p) {
			return strconv.Itoa(own.ContainerPort)
		}
	}
	return string(p)
}
