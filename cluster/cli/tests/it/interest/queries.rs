//! Questions of a client, and their answers.

use purview::interest::{Cap, Rules};
use purview_server::interest::encode::change;
use purview_server::interest::proto::query::Query as Form;
use purview_server::interest::proto::{
    AllPairs, Answer, Change, Kinds, Place, Query, Reason, Rect, Round, SetKind, SetPlane, change,
    place,
};

use super::support::{Service, ask, circle, create, scene, tick, walk, with_stream};

fn query(id: u64, form: Form) -> Change {
    change(1, change::Change::Query(Query { id, query: Some(form) }))
}

fn circle_at(x: i32, radius_cm: u32) -> Place {
    let area = place::Area::Circle(Round { x, z: 0, radius_cm });
    Place { area: Some(area), ..Place::default() }
}

/// Five entities in a row, 50 cm apart; each sees its two neighbours on either side.
fn row() -> Vec<Change> {
    let places: Vec<_> = (1..=5).map(|id| (id, 50 * id as i32, 0)).collect();
    vec![scene(1, &circle()), create(1, &places), tick(1)]
}

#[test]
fn a_client_asks_who_sees_whom_and_who_is_where() {
    with_stream(&[], async |_, mut stream| {
        let kinds = SetKind { ids: vec![4, 5], kinds: vec![7, 7] };
        let plane = SetPlane { ids: vec![5], planes: vec![-3] };
        let rect = Rect { x0: 100, z0: 0, x1: 250, z1: 1 };
        let rect = Place { area: Some(place::Area::Rect(rect)), ..Place::default() };
        let of_kind = Place { kinds: Some(Kinds { kinds: vec![7] }), ..circle_at(0, 5_000) };
        let in_plane = Place { plane: Some(0), ..circle_at(200, 50) };
        let changes = vec![
            query(10, Form::Sees(1)),
            query(11, Form::SeenBy(3)),
            change(1, change::Change::SetKind(kinds)),
            change(1, change::Change::SetPlane(plane)),
            // Pairs are those of the last tick, entities those of now.
            query(12, Form::SeenBy(5)),
            query(13, Form::Place(rect)),
            query(14, Form::Place(of_kind)),
            query(15, Form::Place(in_plane)),
            query(16, Form::Place(Place { nearest: 2, ..circle_at(190, 5_000) })),
            tick(1),
            query(17, Form::SeenBy(5)),
        ];
        let outcome = ask(&mut stream, [row(), changes].concat()).await;
        assert_eq!(outcome.refused, vec![]);
        let told: Vec<_> = outcome.answers.iter().map(|a| (a.query, a.ids.clone())).collect();
        let wanted: [(u64, &[u64]); 8] = [
            (10, &[2, 3]),
            (11, &[1, 2, 4, 5]),
            (12, &[3, 4]),
            (13, &[2, 3, 4]),
            (14, &[4, 5]),
            (15, &[3, 4]),
            (16, &[4, 3]),
            (17, &[]),
        ];
        assert_eq!(told, wanted.map(|(query, ids)| (query, ids.to_vec())));
        let place = &outcome.answers[6];
        assert_eq!((&place.x[..], &place.z[..]), (&[200, 150][..], &[0, 0][..]));
        assert_eq!((place.batch, place.scene, place.more), (1, 1, false));
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pairs_of_a_scene_are_those_that_events_have_told() {
    let service = Service::start(&[]);
    let cap = Some(Cap { most: 2, margin_cm: 0 });
    for rules in [circle(), Rules { cap, ..circle() }] {
        let mut stream = service.address().begin().await.unwrap();
        let places: Vec<_> =
            (0..200).map(|id| (id, 37 * id as i32 % 1_000, 53 * id as i32 % 900)).collect();
        let begin = vec![scene(1, &rules), create(1, &places), tick(1)];
        let moves = (0..40).map(|id| walk(1, id, 11 * id as i32, 400)).collect();
        let ask_all = vec![tick(1), query(1, Form::Pairs(AllPairs {}))];
        let outcome = ask(&mut stream, [begin, moves, ask_all].concat()).await;
        let mut told = std::collections::BTreeSet::new();
        for event in outcome.events(1) {
            let pair = (event.observer, event.subject);
            assert!(if event.appears { told.insert(pair) } else { told.remove(&pair) });
        }
        let columns = |a: &Answer| -> Vec<(u64, u64)> {
            a.observers.iter().copied().zip(a.ids.iter().copied()).collect()
        };
        let answered: Vec<_> = outcome.answers.iter().flat_map(columns).collect();
        assert!(told.len() > 100 && answered.into_iter().eq(told));
    }
}

#[test]
fn queries_that_cannot_be_answered_are_refused() {
    with_stream(&[], async |_, mut stream| {
        let none = change(1, change::Change::Query(Query::default()));
        let kinds = Place { kinds: Some(Kinds { kinds: vec![256] }), ..circle_at(0, 1) };
        let changes = vec![
            query(1, Form::Sees(9)),
            none,
            query(2, Form::Place(Place::default())),
            query(3, Form::Place(kinds)),
            change(2, change::Change::Query(Query { id: 4, query: Some(Form::SeenBy(1)) })),
        ];
        let outcome = ask(&mut stream, [row(), changes].concat()).await;
        let told: Vec<_> =
            outcome.refused.iter().map(|r| (r.reason(), r.entity, r.text.as_str())).collect();
        let wanted = [
            (Reason::UnknownEntity, Some(9), "no entity has the id 9"),
            (Reason::Query, None, "the query has no form"),
            (Reason::Query, None, "the place has no `rect` and no `circle`"),
            (Reason::Query, None, "kind 256; 0 to 255 is legal"),
            (Reason::UnknownScene, None, "no scene has the id 2"),
        ];
        assert_eq!((told, outcome.answers), (wanted.to_vec(), vec![]));
    });
}
