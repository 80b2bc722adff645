//! What tells where profiles come from: attributes by OpenTelemetry's semantic conventions, as far as recordings know them.

use super::field;
use crate::label::Label;
use crate::profile::{Origin, ProfileMethod, Thread};
use crate::report::protobuf::Message;

/// The value of an attribute.
pub enum Value<'a> {
    Text(&'a str),
    Number(u64),
}

impl Value<'_> {
    pub fn message(&self) -> Message {
        let mut value = Message::default();
        match self {
            Self::Text(text) => value.text(field::any_value::STRING, Label::new(text).as_str()),
            Self::Number(number) => value.number(field::any_value::INT, *number),
        };
        value
    }
}

/// Of a recording: its machine, container, pod and job, and how its joules came about. Names that no convention has begin with
/// `eprof.`.
pub fn resource(origin: &Origin, program: &str, method: ProfileMethod) -> Message {
    let mut message = Message::default();
    let mut tell = |key: &str, value: Option<&str>| {
        let Some(value) = value.filter(|value| !value.is_empty()) else { return };
        let mut attribute = Message::default();
        attribute.text(field::key_value::KEY, key);
        attribute.message(field::key_value::VALUE, &Value::Text(value).message());
        message.message(field::resource::ATTRIBUTES, &attribute);
    };
    tell("service.name", Some(program).filter(|name| !name.is_empty()).or(Some("unknown_service")));
    tell("host.name", Some(&origin.hostname));
    tell("os.type", Some("linux"));
    tell("os.version", Some(&origin.kernel));
    tell(
        "eprof.energy.method",
        match method {
            ProfileMethod::Measured => Some("measured"),
            ProfileMethod::Estimated => Some("estimated"),
            ProfileMethod::Mixed => Some("partly estimated"),
            ProfileMethod::None => None,
        },
    );
    let Some(identity) = &origin.identity else { return message };
    tell("host.id", identity.machine.as_ref().map(ToString::to_string).as_deref());
    tell("eprof.boot.id", identity.boot.as_deref());
    tell("container.id", identity.container.as_ref().map(|container| container.id.as_str()));
    if let Some(pod) = &identity.pod {
        tell("k8s.pod.uid", pod.uid.as_deref());
        tell("k8s.pod.name", pod.name.as_deref());
        tell("k8s.namespace.name", pod.namespace.as_deref());
        tell("k8s.node.name", pod.node.as_deref());
    }
    tell("eprof.job.id", identity.job.id.as_deref());
    tell("eprof.job.step", identity.job.step.as_deref());
    tell("eprof.job.rank", identity.job.rank.map(|rank| rank.to_string()).as_deref());
    for (key, value) in identity.labels.iter() {
        tell(&format!("eprof.label.{key}"), Some(value));
    }
    message
}

/// Of a thread.
pub fn of_thread(thread: &Thread) -> Vec<(&'static str, Value<'_>)> {
    let mut attributes = vec![
        ("thread.name", Value::Text(&thread.name)),
        ("process.executable.name", Value::Text(&thread.process_name)),
    ];
    // A number of zero is written like none.
    let (pid, tid) = thread.ids().unwrap_or_default();
    let numbers = [("thread.id", tid), ("process.pid", pid)];
    attributes.extend(
        numbers.into_iter().filter(|(_, id)| *id != 0).map(|(key, id)| (key, Value::Number(u64::from(id)))),
    );
    attributes
}
