package recipes

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/zclconf/go-cty/cty"
)

// blockBody is the content of a nested block.
type blockBody struct {
	*hcl.BodyContent
	block *Block
}

func (b blockBody) shape() *Block { return b.block }

func (b blockBody) attr(name string) *hcl.Attribute { return b.Attributes[name] }

// blockContent decodes a nested block, once.
func (l *loader) blockContent(t string, b *hcl.Block) blockBody {
	c, ok := l.contents[b]
	if !ok {
		c = l.content(t, b)
		l.contents[b] = c
	}
	return blockBody{c, blockNamed[b.Type]}
}

// channels evaluates the channels of the recipe.
func (l *loader) channels(d *deploy.Deployment) {
	for _, decl := range l.ordered["channel"] {
		if _, ok := l.value(node{"channel", decl.name}); !ok {
			continue
		}
		for i := range decl.instances {
			at := &decl.instances[i]
			s := instanceScope(decl, at)
			description, _ := l.stringAttr(s, decl, "description")
			d.Channels = append(d.Channels, deploy.ChannelSpec{Address: at.address, Name: at.name, Description: description, Where: l.where(decl.at)})
		}
	}
	for _, c := range d.Channels {
		l.channelNames[c.Address] = c.Name
	}
}

// instanceScope is the scope of the attributes of one instance.
func instanceScope(d *declaration, i *instance) scope {
	s := scope{title: d.title, forEach: d.attr("for_each") != nil}
	if i != nil && i.keyed {
		s.each = i
	}
	return s
}

// creatures evaluates the creatures of the recipe.
func (l *loader) creatures(ctx context.Context, d *deploy.Deployment) {
	for _, decl := range l.ordered["creature"] {
		_, ok := l.value(node{"creature", decl.name})
		if !ok || len(decl.instances) == 0 {
			l.checkUninstantiated(decl)
			continue
		}
		for i := range decl.instances {
			if ctx.Err() != nil {
				return
			}
			spec := l.creature(ctx, decl, &decl.instances[i])
			decl.instances[i].name = spec.Name
			d.Creatures = append(d.Creatures, spec)
		}
	}
}

// checkUninstantiated looks up the references of a creature of which there is
// no instance to evaluate, so that its mistakes are told nevertheless.
func (l *loader) checkUninstantiated(d *declaration) {
	s := instanceScope(d, nil)
	for _, name := range slices.Sorted(maps.Keys(d.content.Attributes)) {
		if name == "for_each" {
			continue
		}
		expr := d.content.Attributes[name].Expr
		l.prepare(s, expr)
		if name == "listen" || name == "send" {
			l.mention(expr)
		}
	}
	l.prepareOutputs(s, d)
}

// creature evaluates one instance. What the species says comes first, what the
// creature itself says goes before it.
func (l *loader) creature(ctx context.Context, d *declaration, i *instance) deploy.CreatureSpec {
	s := instanceScope(d, i)
	spec := deploy.CreatureSpec{Address: i.address, Name: i.name, Where: l.where(d.at)}
	l.keepPlace(s, d, i.address)
	species := l.speciesOf(s, d)
	config := map[string]json.RawMessage{}
	if species != nil {
		spec.Species = species.name
		own := scope{title: species.title}
		species.in.traits(own, species.declaration, &spec)
		species.in.addConfig(own, species, config, &spec)
	}
	l.declareDescription(s, d, i.address)
	l.traits(s, d, &spec)
	l.addConfig(s, d, config, &spec)
	setConfig(&spec, config)
	if name, ok := l.stringAttr(s, d, "name"); ok {
		if !validKey(name) {
			l.fault(s, d.attr("name").Expr, "Invalid name", fmt.Sprintf("%q cannot be the name of a creature.", name),
				fmt.Sprintf("Names are printable texts without spaces at the ends, of 1 to %d bytes.", maxKeyBytes))
		}
		spec.Name = l.names + name
	}
	spec.Privileged = l.boolAttr(s, d, "privileged")
	spec.Listen = l.wires(s, d, "listen", true)
	spec.Send = l.wires(s, d, "send", false)
	spec.Outputs = l.outputs(s, d, i.address)
	l.moduleOf(ctx, s, d, species, &spec)
	return spec
}

// ofSpecies is a species and whose it is.
type ofSpecies struct {
	*declaration
	in   *loader
	name string // in the deployment
}

// speciesOf returns the species that a creature names, if any.
func (l *loader) speciesOf(s scope, d *declaration) *ofSpecies {
	a := d.attr("species")
	if a == nil {
		return nil
	}
	v, ok := l.eval(s, a.Expr)
	if !ok || v.IsNull() {
		return nil
	}
	address, ok := refAddress(v, "species")
	if !ok {
		l.wrongReference(s, a.Expr, v, "species")
		return nil
	}
	return l.species[address]
}

// addConfig puts a configuration over what there is.
func (l *loader) addConfig(s scope, h holder, config map[string]json.RawMessage, spec *deploy.CreatureSpec) {
	attributes, secret := l.config(s, h)
	maps.Copy(config, attributes)
	spec.Secret = slices.DeleteFunc(spec.Secret, func(name string) bool { return attributes[name] != nil })
	spec.Secret = append(spec.Secret, secret...)
}

// setConfig gives a specification its configuration, if there is one.
func setConfig(spec *deploy.CreatureSpec, config map[string]json.RawMessage) {
	if len(config) == 0 {
		return
	}
	if data, err := json.Marshal(config); err == nil {
		spec.Config = data
	}
}

// config evaluates the configuration, attribute by attribute. secret names
// those in which something is sensitive.
func (l *loader) config(s scope, h holder) (attributes map[string]json.RawMessage, secret []string) {
	a := h.attr("config")
	if a == nil {
		return nil, nil
	}
	v, ok := l.eval(s.secretly(), a.Expr)
	if !ok {
		return nil, nil
	}
	v, whole := v.Unmark()
	if v.IsNull() {
		return nil, nil
	}
	if ty := v.Type(); !ty.IsObjectType() && !ty.IsMapType() {
		l.fault(s, a.Expr, "Configuration is not an object", fmt.Sprintf("A configuration is an object; this is %s.", describeUnless(len(whole) > 0, v)), "Write config = { key = value }.")
		return nil, nil
	}
	out := map[string]json.RawMessage{}
	for it := v.ElementIterator(); it.Next(); {
		k, e := it.Element()
		k, _ = k.Unmark()
		data, err := jsonOf(e)
		if err != nil {
			l.fault(s, a.Expr, "Configuration cannot be JSON", sentence(err.Error()), "")
			return nil, nil
		}
		out[k.AsString()] = data
		if len(whole) > 0 || e.ContainsMarked() {
			secret = append(secret, k.AsString())
		}
	}
	return out, secret
}

// wrongReference reports a value that is not a reference of the kind wanted.
func (l *loader) wrongReference(s scope, expr hcl.Expression, v cty.Value, kind string) {
	l.astray = l.astray || kind == "channel" && v.Type() != cty.String
	v, _ = v.Unmark()
	switch ty := v.Type(); {
	case v.IsNull():
		l.fault(s, expr, capital(kind)+" expected", "The value is null.", "")
	case ty == cty.String:
		l.notQuoted(s, expr, v.AsString(), kind)
	case ty.IsMapType() && ty.ElementType().Equals(referenceType):
		keys := keysOf(v)
		remedy := "It has no instances."
		if vars := expr.Variables(); len(keys) > 0 && len(vars) == 1 {
			text := traversalText(vars[0])
			remedy = fmt.Sprintf("Say which one, for example %s[%q].", text, keys[0])
			if kind == "channel" {
				remedy = fmt.Sprintf("Say which one, for example %s[%q], or write values(%s) in place of the list for all of them.", text, keys[0], text)
			}
		}
		l.fault(s, expr, "Which "+kind+"?", fmt.Sprintf("This stands for all instances of a for_each: %s.", describe(v)), remedy)
	default:
		l.fault(s, expr, capital(kind)+" expected", fmt.Sprintf("A reference to a %s belongs here; this is %s.", kind, describe(v)), "")
	}
}

// notQuoted reports a text where a reference belongs.
func (l *loader) notQuoted(s scope, expr hcl.Expression, text, kind string) {
	name := text
	if len(name) > len(kind)+1 && name[:len(kind)+1] == kind+"." {
		name = name[len(kind)+1:]
	}
	d := Diagnostic{Summary: capital(kind) + " expected, found a text",
		Detail: fmt.Sprintf("References are written without quotes, so that they can be checked; this is the text %q.", text)}
	if l.decls[kind][name] == nil {
		name = nearest(name, l.declared(kind))
	}
	switch {
	case name == "":
		d.Remedy = fmt.Sprintf("Write %s.NAME without quotes.", kind)
	case isJSON(expr):
		d.Remedy = fmt.Sprintf(`Write "${%s.%s}".`, kind, name)
	default:
		d.Remedy = fmt.Sprintf("Write %s.%s without quotes.", kind, name)
	}
	if kind == "channel" {
		l.used[name] = true
	}
	l.add(l.at(s, expr.Range(), d))
}
