package recipes

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
)

func (dec *decoder) channels() {
	for _, decl := range dec.ordered["channel"] {
		if _, ok := dec.value(node{"channel", decl.name}); !ok {
			continue
		}
		for i := range decl.instances {
			at := &decl.instances[i]
			s := instanceScope(decl, at)
			description, _ := dec.stringAttr(s, decl, "description")
			dec.declareBesides(s, decl, at.address)
			dec.deployment.Channels = append(dec.deployment.Channels, deploy.ChannelSpec{Address: at.address, Name: at.name, Description: description, Where: dec.where(decl.at)})
		}
	}
	for _, c := range dec.deployment.Channels {
		dec.channelNames[c.Address] = c.Name
	}
}

func instanceScope(d *declaration, i *instance) scope {
	s := scope{title: d.title, forEach: d.attr("for_each") != nil}
	if i != nil && i.keyed {
		s.each = i
	}
	return s
}

func (dec *decoder) creatures(ctx context.Context) {
	for _, decl := range dec.ordered["creature"] {
		_, ok := dec.value(node{"creature", decl.name})
		if !ok || len(decl.instances) == 0 {
			dec.checkUninstantiated(decl)
			continue
		}
		for i := range decl.instances {
			if ctx.Err() != nil {
				return
			}
			spec := dec.creature(ctx, decl, &decl.instances[i])
			decl.instances[i].name = spec.Name
			dec.deployment.Creatures = append(dec.deployment.Creatures, spec)
		}
	}
}

// checkUninstantiated looks up the references of a creature without instances, so that
// its mistakes are reported nevertheless.
func (dec *decoder) checkUninstantiated(d *declaration) {
	s := instanceScope(d, nil)
	for _, name := range slices.Sorted(maps.Keys(d.content.Attributes)) {
		if name == "for_each" {
			continue
		}
		expr := d.content.Attributes[name].Expr
		dec.prepare(s, expr)
		if name == "listen" || name == "send" {
			dec.mention(expr)
		}
	}
	dec.prepareOutputs(s, d)
}

// creature evaluates one instance. The creature's own attributes override those of its
// species.
func (dec *decoder) creature(ctx context.Context, d *declaration, i *instance) deploy.CreatureSpec {
	s := instanceScope(d, i)
	spec := deploy.CreatureSpec{Address: i.address, Name: i.name, Where: dec.where(d.at)}
	dec.keepPlace(s, d, i.address)
	species := dec.speciesOf(s, d)
	config := map[string]json.RawMessage{}
	if species != nil {
		spec.Species = species.name
		own := scope{title: species.title}
		species.in.traits(own, species.declaration, &spec)
		species.in.addConfig(own, species, config, &spec)
	}
	spec.Description = dec.description(s, d)
	if species != nil && spec.Description == "" {
		spec.Description, _ = species.in.stringAttr(scope{title: species.title}, species, "description")
	}
	dec.declareBesides(s, d, i.address)
	dec.traits(s, d, &spec)
	dec.addConfig(s, d, config, &spec)
	setConfig(&spec, config)
	if name, ok := dec.stringAttr(s, d, "name"); ok {
		if !validKey(name) {
			dec.fault(s, d.attr("name").Expr, "Invalid name", fmt.Sprintf("%q cannot be the name of a creature.", name), nameRule)
		}
		spec.Name = dec.names + name
	}
	spec.Privileged = dec.boolAttr(s, d, "privileged")
	spec.Listen = dec.wires(s, d, "listen", true)
	spec.Send = dec.wires(s, d, "send", false)
	spec.Outputs = dec.outputs(s, d, i.address)
	dec.moduleOf(ctx, s, d, species, &spec)
	return spec
}

// ofSpecies is a species, with its decoder.
type ofSpecies struct {
	*declaration
	in   *decoder
	name string // in the deployment
}

func (dec *decoder) speciesOf(s scope, d *declaration) *ofSpecies {
	a := d.attr("species")
	if a == nil {
		return nil
	}
	v, ok := dec.eval(s, a.Expr)
	if !ok || v.IsNull() {
		return nil
	}
	address, ok := refAddress(v, "species")
	if !ok {
		dec.wrongReference(s, a.Expr, v, "species")
		return nil
	}
	return dec.species[address]
}

func (dec *decoder) addConfig(s scope, h holder, config map[string]json.RawMessage, spec *deploy.CreatureSpec) {
	attributes, secret := dec.config(s, h)
	maps.Copy(config, attributes)
	spec.Secret = slices.DeleteFunc(spec.Secret, func(name string) bool { return attributes[name] != nil })
	spec.Secret = append(spec.Secret, secret...)
}

// setConfig sets the configuration of a specification, if there is one.
func setConfig(spec *deploy.CreatureSpec, config map[string]json.RawMessage) {
	if len(config) == 0 {
		return
	}
	if data, err := json.Marshal(config); err == nil {
		spec.Config = data
	}
}

// config evaluates the configuration, attribute by attribute. secret lists the attributes
// with sensitive values.
func (dec *decoder) config(s scope, h holder) (attributes map[string]json.RawMessage, secret []string) {
	a := h.attr("config")
	if a == nil {
		return nil, nil
	}
	v, ok := dec.eval(s.secretly(), a.Expr)
	if !ok {
		return nil, nil
	}
	v, whole := v.Unmark()
	if v.IsNull() {
		return nil, nil
	}
	if ty := v.Type(); !ty.IsObjectType() && !ty.IsMapType() {
		dec.fault(s, a.Expr, "Configuration is not an object", fmt.Sprintf("The configuration must be an object; this is %s.", describeUnless(len(whole) > 0, v)), "Write config = { key = value }.")
		return nil, nil
	}
	out := map[string]json.RawMessage{}
	for it := v.ElementIterator(); it.Next(); {
		k, e := it.Element()
		k, _ = k.Unmark()
		data, err := jsonOf(e)
		if err != nil {
			dec.fault(s, a.Expr, "Configuration cannot be JSON", sentence(err.Error()), "")
			return nil, nil
		}
		out[k.AsString()] = data
		if len(whole) > 0 || e.ContainsMarked() {
			secret = append(secret, k.AsString())
		}
	}
	return out, secret
}
