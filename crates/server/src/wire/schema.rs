//! What the document says about values that several bodies hold.

use saltern_core::campaigns::Moment;
use saltern_core::limits::{
    CAMPAIGN_TIME_MIN_MS, EVENT_AREAS_MAX, ID_BYTES_MAX, LOOKUP_PARTNERS_MAX, MARKET_SLOTS_MAX, PAGE_LIMIT_MAX,
    SLOT_NAME_BYTES_MAX,
};
use utoipa::openapi::schema::{
    AdditionalProperties, Array, ArrayBuilder, KnownFormat, Object, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat,
    SchemaType, Type,
};

/// `HH:MM`, from `00:00` to `24:00`.
const TIME_OF_DAY: &str = "^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$";
/// In any case.
const DAY: &str = "^([Mm][Oo][Nn]|[Tt][Uu][Ee][Ss]|[Ww][Ee][Dd][Nn][Ee][Ss]|[Tt][Hh][Uu][Rr][Ss]|[Ff][Rr][Ii]|\
    [Ss][Aa][Tt][Uu][Rr]|[Ss][Uu][Nn])[Dd][Aa][Yy]$";

fn text(bytes_max: usize) -> Object {
    let text = ObjectBuilder::new().schema_type(SchemaType::new(Type::String));
    text.min_length(Some(1)).max_length(Some(bytes_max)).build()
}

fn pattern(pattern: &str) -> Object {
    ObjectBuilder::new().schema_type(SchemaType::new(Type::String)).pattern(Some(pattern)).build()
}

fn list(item: Object) -> ArrayBuilder {
    ArrayBuilder::new().items(item)
}

/// Null, or no array, is an empty one.
fn maybe(list: ArrayBuilder) -> Schema {
    list.schema_type(SchemaType::from_iter([Type::Array, Type::Null])).into()
}

/// An id: 1 to 256 bytes.
pub(crate) fn ids() -> Array {
    list(text(ID_BYTES_MAX)).build()
}

/// Numbers of dead letters.
pub(crate) fn letters() -> Array {
    let number = ObjectBuilder::new().schema_type(SchemaType::new(Type::Integer)).minimum(Some(1)).build();
    list(number).max_items(Some(PAGE_LIMIT_MAX)).build()
}

pub(crate) fn partner_ids() -> Array {
    list(text(ID_BYTES_MAX)).min_items(Some(1)).max_items(Some(LOOKUP_PARTNERS_MAX)).build()
}

pub(crate) fn areas() -> Schema {
    maybe(list(text(ID_BYTES_MAX)).max_items(Some(EVENT_AREAS_MAX)))
}

pub(crate) fn days() -> Schema {
    maybe(list(pattern(DAY)))
}

pub(crate) fn slot_names() -> Schema {
    maybe(list(text(SLOT_NAME_BYTES_MAX)))
}

/// RFC 3339, or milliseconds since 1970, from the year 2000 on; null is none.
pub(crate) fn time() -> Schema {
    let text = ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::String))
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)));
    let milliseconds = ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::Integer))
        .minimum(Some(CAMPAIGN_TIME_MIN_MS))
        .maximum(Some(Moment::MAX.as_ms()));
    let none = ObjectBuilder::new().schema_type(SchemaType::new(Type::Null));
    OneOfBuilder::new().item(text).item(milliseconds).item(none).into()
}

/// From one time up to another, by name.
pub(crate) fn time_slots() -> Object {
    let times = list(pattern(TIME_OF_DAY)).min_items(Some(2)).max_items(Some(2)).build();
    ObjectBuilder::new()
        .property_names(Some(text(SLOT_NAME_BYTES_MAX)))
        .additional_properties(Some(AdditionalProperties::from(Schema::Array(times))))
        .max_properties(Some(MARKET_SLOTS_MAX))
        .build()
}
